// attention_parts_TYPE: a threadgroup takes 64 dimensions of one part of the keys for up to eight
// query heads. Sixteen threads a head turn its scores into weights; then a thread takes a dimension
// of four heads and adds up values in ascending order, which pass through shared memory 64 keys at
// a time; those that come next are asked for before. Every slice of the dimensions works out the
// weights anew. 32 KiB of shared memory. Bound by latency for short contexts (512 multiplications,
// one after another, of a whole part), by shared memory for long ones.
//
// attention_combine_f32: a threadgroup per head of a row. What parts are multiplied by is worked
// out side by side, then a thread per dimension adds them up in ascending order.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/kv_keys.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define PART_ROUND 64u    // keys whose values are in shared memory
#define KEYS_TOGETHER 8u  // read before the first is used
#define EXPS_TOGETHER 8u
#define KEYS_OF_THREAD (ATTENTION_PART_KEYS / N_LANES)  // whose scores it has
#define VALUES_OF_THREAD (PART_ROUND * ATTENTION_PART_DIMS / ATTENTION_PART_THREADS)  // of a round
#define MOST_CHUNKS 8u  // of 16 bytes, that a thread has of a round

/// A thread's share of a round of values: chunks of 16 bytes, and scales.
struct StagedValues {
  u32x4 chunks[MOST_CHUNKS];
  f32 scales[MOST_CHUNKS];
};

/// Chunk i of the thread: key of the round, first of its dimensions in the slice.
DEVICE_FN u32 chunk_key(u32 type, u32 thread_id, u32 i) {
  return (thread_id + ATTENTION_PART_THREADS * i) * kv_word_values(type) / ATTENTION_PART_DIMS;
}
DEVICE_FN u32 chunk_dim(u32 type, u32 thread_id) {
  return thread_id * kv_word_values(type) % ATTENTION_PART_DIMS;
}

/// What the thread has of the round from `start` on, of dimensions from `first_dim` on: values at
/// positions [begin, end); others stand for those that are not there.
DEVICE_FN void load_values(u32 type, KvHead head, DEVICE(const i32) table, DEVICE(const u8) values,
                           u32 start, u32 begin, u32 end, u32 first_dim, u32 thread_id,
                           THREAD_REF(StagedValues) staged) {
  const u32 n_word = kv_word_values(type);
  const u32 own_dim = first_dim + chunk_dim(type, thread_id);
  const u32 d = own_dim < head.head_dim ? own_dim : 0u;
  UNROLL for (u32 i = 0; i < VALUES_OF_THREAD / n_word; ++i) {
    const u32 key = min_u32(max_u32(start + chunk_key(type, thread_id, i), begin), end - 1u);
    const u32 at = key % ATTENTION_BLOCK_KEYS * head.head_dim + d;
    DEVICE(const u8) panel = values + panel_start(type, head, table, key);
    staged.chunks[i] = load4(words(panel + at / n_word * 16));
    staged.scales[i] = 1.0f;
    if (type >= KV_Q8_0) {
      staged.scales[i] = kv_scale(panel + kv_cell_bytes(type, head.head_dim), at / 32);
    }
  }
}

/// The round as floats, [key][ATTENTION_PART_DIMS].
DEVICE_FN void store_values(u32 type, THREAD_REF(const StagedValues) staged, u32 thread_id,
                            SHARED(f32) round) {
  const u32 n_word = kv_word_values(type);
  const u32 n_part = n_word / 4;
  UNROLL for (u32 i = 0; i < VALUES_OF_THREAD / n_word; ++i) {
    SHARED(f32)
    to = round + (chunk_key(type, thread_id, i) * ATTENTION_PART_DIMS + chunk_dim(type, thread_id));
    UNROLL for (u32 j = 0; j < n_word; j += 4) {
      f32 four[4];
      UNROLL for (u32 k = 0; k < 4; ++k) {
        four[k] = kv_part_value(type, word_part(staged.chunks[i], (j + k) / n_part),
                                (j + k) % n_part, staged.scales[i]);
      }
      store4(to + j, make4(four[0], four[1], four[2], four[3]));
    }
  }
}

/// Weights of a head's keys: largest score and sum.
struct HeadWeights {
  f32 largest;
  f32 sum;
};

/// Weights [key][ATTENTION_MAX_HEADS] of the head's keys, by its sixteen threads, of which each has
/// a lane of the sum; scores: of the head's part, which begins at a multiple of 16.
DEVICE_FN HeadWeights weigh_keys(KeyRange range, DEVICE(const f32) scores, u32 head, u32 thread_id,
                                 SHARED(f32) weights) {
  f32 own[KEYS_OF_THREAD];
  HeadWeights result = {f32_of_bits(0xff800000u), 0.0f};  // minus infinity, which every score beats
  const u32 lane = thread_id % N_LANES;
  const u32 begin = range.begin - range.start;
  const u32 end = range.end - range.start;
  UNROLL for (u32 i = 0; i < KEYS_OF_THREAD; ++i) {
    own[i] = scores[min_u32(max_u32(N_LANES * i + lane, begin), end - 1u)];
  }
  // One that stands for a score out of sight is no larger than what it stands for.
  UNROLL for (u32 i = 0; i < KEYS_OF_THREAD; ++i) {
    result.largest = own[i] > result.largest ? own[i] : result.largest;
  }
  for (u32 distance = N_LANES / 2; distance > 0; distance /= 2) {
    const f32 other = shuffle_xor(result.largest, distance);
    result.largest = other > result.largest ? other : result.largest;
  }
  UNROLL for (u32 first = 0; first < KEYS_OF_THREAD; first += EXPS_TOGETHER) {
    if (N_LANES * first < end && N_LANES * (first + EXPS_TOGETHER) > begin) {
      UNROLL for (u32 i = first; i < first + EXPS_TOGETHER; ++i) {
        own[i] = exp_f32(own[i] - result.largest);
      }
      UNROLL for (u32 i = first; i < first + EXPS_TOGETHER; ++i) {
        const u32 key = N_LANES * i + lane;
        weights[key * ATTENTION_MAX_HEADS + head] = own[i];
        result.sum = key >= begin && key < end ? result.sum + own[i] : result.sum;
      }
    }
  }
  result.sum = sum_lanes(result.sum);
  return result;
}

DEVICE_FN f32x4 add_key_value(f32x4 weights, f32 value, f32x4 sums) {
  return make4(fma_f32(weights.x, value, sums.x), fma_f32(weights.y, value, sums.y),
               fma_f32(weights.z, value, sums.z), fma_f32(weights.w, value, sums.w));
}

/// Adds the values of n keys to a dimension of four heads; weights [key][ATTENTION_MAX_HEADS],
/// values [key][ATTENTION_PART_DIMS], both of the first key and the thread's own.
DEVICE_FN f32x4 add_keys(u32 n, SHARED(const f32) weights, SHARED(const f32) values, f32x4 sums) {
  u32 key = 0;
  for (; key + KEYS_TOGETHER <= n; key += KEYS_TOGETHER) {
    f32x4 four[KEYS_TOGETHER];
    f32 value[KEYS_TOGETHER];
    UNROLL for (u32 i = 0; i < KEYS_TOGETHER; ++i) {
      four[i] = load4(weights + (key + i) * ATTENTION_MAX_HEADS);
      value[i] = values[(key + i) * ATTENTION_PART_DIMS];
    }
    UNROLL for (u32 i = 0; i < KEYS_TOGETHER; ++i) {
      sums = add_key_value(four[i], value[i], sums);
    }
  }
  for (; key < n; ++key) {
    sums = add_key_value(load4(weights + key * ATTENTION_MAX_HEADS),
                         values[key * ATTENTION_PART_DIMS], sums);
  }
  return sums;
}

#define ATTENTION_PARTS_KERNEL(name, type)                                                         \
  EARLY_KERNEL(name, ATTENTION_PART_THREADS, AttentionParams, BUFFER(0, const u32, counts),        \
               BUFFER(1, const f32, scores), BUFFER(2, const i32, positions),                      \
               BUFFER(3, const i32, sequences), BUFFER(4, const i32, tables),                      \
               BUFFER(5, const u8, values), BUFFER(6, f32, partials)) {                            \
    SHARED_ARRAY(f32, weights, ATTENTION_MAX_HEADS* ATTENTION_PART_KEYS);                          \
    SHARED_ARRAY(f32, round, PART_ROUND* ATTENTION_PART_DIMS);                                     \
    const u32 row = k_group.z;                                                                     \
    const HeadRun run = head_run(p, k_group.y, ATTENTION_MAX_HEADS);                               \
    const KvHead kv_head = {p.head_dim, p.n_kv_heads, run.kv_head};                                \
    const u32 n_slices = (p.head_dim + ATTENTION_PART_DIMS - 1u) / ATTENTION_PART_DIMS;            \
    u32 n_items = 0;                                                                               \
    u32 position = 0;                                                                              \
    u32 first_key = 0;                                                                             \
    if (row < counts[0]) {                                                                         \
      position = u32(positions[row]);                                                              \
      first_key = first_key_seen(position, p.window);                                              \
      n_items =                                                                                    \
          (position / ATTENTION_PART_KEYS - first_key / ATTENTION_PART_KEYS + 1u) * n_slices;      \
    }                                                                                              \
    if (k_group.x >= n_items) {                                                                    \
      wait_for_kernel_before();                                                                    \
      return;                                                                                      \
    }                                                                                              \
    DEVICE(const i32) table = tables + u64(u32(sequences[row])) * p.table_stride;                  \
    const u32 head = k_thread.x / N_LANES;                                                         \
    const u32 own_dim = k_thread.x % ATTENTION_PART_DIMS;                                          \
    const u32 four_heads = k_thread.x / ATTENTION_PART_DIMS * 4;                                   \
    const u64 first_record = (u64(row) * p.n_heads + run.first_head) * p.n_parts;                  \
    StagedValues staged;                                                                           \
    bool has_waited = false;                                                                       \
    for (u32 item = k_group.x; item < n_items; item += k_grid_size.x) {                            \
      const u32 part = first_key / ATTENTION_PART_KEYS + item / n_slices;                          \
      const u32 slice = item % n_slices;                                                           \
      const u32 first_dim = slice * ATTENTION_PART_DIMS;                                           \
      const KeyRange range = keys_of_part(part, position, first_key);                              \
      const u32 begin = range.begin - range.start;                                                 \
      const u32 end = range.end - range.start;                                                     \
      u32 start = begin / PART_ROUND * PART_ROUND;                                                 \
      const u32 first_start = range.start + start;                                                 \
      /* of a row alone only its own value is not in the cache yet */                              \
      if (has_waited || p.is_alone != 0u) {                                                        \
        load_values(type, kv_head, table, values, first_start, range.begin, range.end, first_dim,  \
                    k_thread.x, staged);                                                           \
      }                                                                                            \
      if (!has_waited) {                                                                           \
        wait_for_kernel_before();                                                                  \
        if (p.is_alone == 0u || position - range.start < start + PART_ROUND) {                     \
          load_values(type, kv_head, table, values, first_start, range.begin, range.end,           \
                      first_dim, k_thread.x, staged);                                              \
        }                                                                                          \
        has_waited = true;                                                                         \
      }                                                                                            \
      const HeadWeights head_weights = weigh_keys(                                                 \
          range,                                                                                   \
          scores + (first_record + min_u32(head, run.n_heads - 1u) * p.n_parts + part) *           \
                       ATTENTION_PART_KEYS,                                                        \
          head, k_thread.x, weights);                                                              \
      if (slice == 0u && head < run.n_heads && k_thread.x % N_LANES == 0u) {                       \
        DEVICE(f32)                                                                                \
        record = partials + (first_record + head * p.n_parts + part) * (p.head_dim + 2u);          \
        record[p.head_dim] = head_weights.largest;                                                 \
        record[p.head_dim + 1u] = head_weights.sum;                                                \
      }                                                                                            \
      f32x4 sums = make4(0.0f, 0.0f, 0.0f, 0.0f);                                                  \
      for (; start < end; start += PART_ROUND) {                                                   \
        store_values(type, staged, k_thread.x, round);                                             \
        if (start + PART_ROUND < end) {                                                            \
          load_values(type, kv_head, table, values, range.start + start + PART_ROUND, range.begin, \
                      range.end, first_dim, k_thread.x, staged);                                   \
        }                                                                                          \
        group_barrier();                                                                           \
        const u32 from = max_u32(start, begin);                                                    \
        sums = add_keys(min_u32(start + PART_ROUND, end) - from,                                   \
                        weights + (from * ATTENTION_MAX_HEADS + four_heads),                       \
                        round + ((from - start) * ATTENTION_PART_DIMS + own_dim), sums);           \
        group_barrier();                                                                           \
      }                                                                                            \
      const f32 four[4] = {sums.x, sums.y, sums.z, sums.w};                                        \
      UNROLL for (u32 i = 0; i < 4; ++i) {                                                         \
        if (four_heads + i < run.n_heads && first_dim + own_dim < p.head_dim) {                    \
          partials[(first_record + (four_heads + i) * p.n_parts + part) * (p.head_dim + 2u) +      \
                   first_dim + own_dim] = four[i];                                                 \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }

ATTENTION_PARTS_KERNEL(attention_parts_f32, KV_F32)
ATTENTION_PARTS_KERNEL(attention_parts_f16, KV_F16)
ATTENTION_PARTS_KERNEL(attention_parts_bf16, KV_BF16)
ATTENTION_PARTS_KERNEL(attention_parts_q8_0, KV_Q8_0)
ATTENTION_PARTS_KERNEL(attention_parts_q4_0, KV_Q4_0)

#define PARTS_AT_ONCE 8u  // asked for before the first is used

/// The largest of the maxima of the lanes up to this one.
DEVICE_FN f32 largest_up_to(f32 maximum, u32 lane) {
  for (u32 distance = 1; distance < 32u; distance *= 2) {
    const f32 before = shuffle(maximum, lane >= distance ? lane - distance : lane);
    maximum = before > maximum ? before : maximum;
  }
  return maximum;
}

EARLY_KERNEL(attention_combine_f32, ATTENTION_COMBINE_THREADS, AttentionParams,
             BUFFER(0, const u32, counts), BUFFER(1, const f32, partials),
             BUFFER(2, const i32, positions), BUFFER(3, const f32, gate), BUFFER(4, f32, y)) {
  SHARED_ARRAY(f32, keeps, ATTENTION_COMBINE_THREADS);
  SHARED_ARRAY(f32, takes, ATTENTION_COMBINE_THREADS);
  SHARED_ARRAY(f32, sums, ATTENTION_COMBINE_THREADS);
  SHARED_ARRAY(f32, maxima, ATTENTION_COMBINE_THREADS / 32);
  const u32 row = k_group.y;
  wait_for_kernel_before();
  if (row >= counts[0]) {
    return;
  }
  const u32 position = u32(positions[row]);
  const u32 first = first_key_seen(position, p.window) / ATTENTION_PART_KEYS;
  const u32 n = position / ATTENTION_PART_KEYS - first + 1u;
  const u32 record = p.head_dim + 2u;
  const u64 head = u64(row) * p.n_heads + k_group.x;
  DEVICE(const f32) parts = partials + (head * p.n_parts + first) * record;
  const u32 d = min_u32(k_thread.x, p.head_dim - 1u);
  const u32 column = k_group.x * p.gate_period + p.gate_start + d;
  f32 row_gate = 0.0f;
  if (p.has_gate != 0u) {
    row_gate = gate[u64(row) * p.gate_stride + column];
  }
  f32 value = parts[d];
  f32 sum = parts[p.head_dim + 1u];
  f32 maximum = parts[p.head_dim];
  for (u32 begin = 1; begin < n; begin += ATTENTION_COMBINE_THREADS) {
    const u32 n_now = min_u32(n - begin, ATTENTION_COMBINE_THREADS);
    DEVICE(const f32) own = parts + u64(begin + min_u32(k_thread.x, n_now - 1u)) * record;
    const f32 next = own[p.head_dim];
    f32 larger = largest_up_to(next, k_lane);
    if (k_lane == 31u) {
      maxima[k_simdgroup] = larger;
    }
    sums[k_thread.x] = own[p.head_dim + 1u];
    group_barrier();
    // The largest of all parts before the simdgroup's.
    for (u32 i = 0; i < k_simdgroup; ++i) {
      maximum = maxima[i] > maximum ? maxima[i] : maximum;
    }
    larger = larger > maximum ? larger : maximum;
    const f32 in_front = shuffle(larger, k_lane == 0u ? 0u : k_lane - 1u);
    const f32 before = k_lane == 0u ? maximum : in_front;
    keeps[k_thread.x] = exp_f32(before - larger);
    takes[k_thread.x] = exp_f32(next - larger);
    for (u32 i = k_simdgroup; i < ATTENTION_COMBINE_THREADS / 32; ++i) {
      maximum = maxima[i] > maximum ? maxima[i] : maximum;
    }
    group_barrier();
    for (u32 i = 0; i < n_now; i += PARTS_AT_ONCE) {
      f32 values[PARTS_AT_ONCE];
      UNROLL for (u32 j = 0; j < PARTS_AT_ONCE; ++j) {
        values[j] = parts[u64(begin + min_u32(i + j, n_now - 1u)) * record + d];
      }
      UNROLL for (u32 j = 0; j < PARTS_AT_ONCE; ++j) {
        if (i + j < n_now) {
          sum = fma_f32(takes[i + j], sums[i + j], keeps[i + j] * sum);
          value = fma_f32(takes[i + j], values[j], keeps[i + j] * value);
        }
      }
    }
    group_barrier();
  }
  if (k_thread.x < p.head_dim) {
    f32 result = value / sum;
    if (p.has_gate != 0u) {
      result = result * activate_f32(p.activation, row_gate);
    }
    y[head * p.head_dim + d] = result;
  }
}

}  // namespace hearth::backend::gpu
