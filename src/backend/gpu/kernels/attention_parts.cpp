// attention_parts_TYPE: a threadgroup takes a slice of the dimensions of one part of the keys for
// up to eight query heads. Sixteen threads a head turn its scores into weights; then a thread takes
// some dimensions of four heads and adds up values in ascending order, which pass through shared
// memory as they are stored, some keys at a time; those that come next are asked for before. Few
// parts are cut into many slices, of which each works out the weights anew. 32 KiB of shared
// memory. Bound by latency for short contexts (512 multiplications, one after another, of a whole
// part), by memory and multiplications for long ones.
//
// attention_combine_f32: a threadgroup per 64 dimensions of a head of a row. What parts are
// multiplied by is worked out side by side, then a thread per dimension adds them up in ascending
// order. Bound by latency.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/kv_keys.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define KEYS_TOGETHER 4u  // read while as many are added
#define EXPS_TOGETHER 8u
#define KEYS_OF_THREAD (ATTENTION_PART_KEYS / N_LANES)  // whose scores it has
#define PART_HEADS 4u                                   // of a thread
#define PART_COLUMNS ATTENTION_PART_DIMS                // of threads
#define MOST_DIMS 4u                                    // of a thread
#define MOST_CHUNKS 8u                                  // of 16 bytes, that a thread has of a round
#define ROUND_WORDS (4 * ATTENTION_PART_THREADS * MOST_CHUNKS)

// `type` is that of the cache, `dims` how many dimensions a thread has; both are known where the
// functions are used.

/// Chunks of 16 bytes that a thread has of a round; quantized types need room for scales.
DEVICE_FN u32 round_chunks(u32 type) {
  return type >= KV_Q8_0 ? MOST_CHUNKS / 2 : MOST_CHUNKS;
}
DEVICE_FN u32 slice_dims(u32 dims) {
  return PART_COLUMNS * dims;
}
/// Keys whose values are in shared memory.
DEVICE_FN u32 round_keys(u32 type, u32 dims) {
  return ATTENTION_PART_THREADS * round_chunks(type) * kv_word_values(type) / slice_dims(dims);
}
/// Where scales are in shared memory: words.
DEVICE_FN u32 round_scales(u32 type) {
  return 4 * ATTENTION_PART_THREADS * round_chunks(type);
}

/// A thread's share of a round of values: chunks of 16 bytes, and scales.
struct StagedValues {
  u32x4 chunks[MOST_CHUNKS];
  f32 scales[MOST_CHUNKS];
};

/// Chunk i of the thread: key of the round, first of its dimensions in the slice.
DEVICE_FN u32 chunk_key(u32 type, u32 dims, u32 thread_id, u32 i) {
  return (thread_id + ATTENTION_PART_THREADS * i) * kv_word_values(type) / slice_dims(dims);
}
DEVICE_FN u32 chunk_dim(u32 type, u32 dims, u32 thread_id) {
  return thread_id * kv_word_values(type) % slice_dims(dims);
}

/// The block of the part that has this lane's number; of those without a key another.
DEVICE_FN u32 block_of_lane(DEVICE(const i32) table, KeyRange range, u32 lane) {
  const u32 block = range.start / ATTENTION_BLOCK_KEYS + lane;
  return u32(table[min_u32(max_u32(block, range.begin / ATTENTION_BLOCK_KEYS),
                           (range.end - 1u) / ATTENTION_BLOCK_KEYS)]);
}

/// What the thread has of the round from key `start` of the part on, of dimensions from `first_dim`
/// on; values that are seen stand for those that are not.
DEVICE_FN void load_values(u32 type, u32 dims, KvHead head, u32 lane_block, DEVICE(const u8) values,
                           KeyRange range, u32 start, u32 first_dim, u32 thread_id,
                           THREAD_REF(StagedValues) staged) {
  const u32 n_word = kv_word_values(type);
  const u32 own_dim = first_dim + chunk_dim(type, dims, thread_id);
  const u32 d = own_dim < head.head_dim ? own_dim : 0u;
  UNROLL for (u32 i = 0; i < round_chunks(type); ++i) {
    const u32 key =
        min_u32(max_u32(range.start + start + chunk_key(type, dims, thread_id, i), range.begin),
                range.end - 1u);
    const u32 block = shuffle(lane_block, (key - range.start) / ATTENTION_BLOCK_KEYS);
    const u32 at = key % ATTENTION_BLOCK_KEYS * head.head_dim + d;
    DEVICE(const u8)
    panel = values +
            (u64(block) * head.n_kv_heads + head.kv_head) * kv_panel_bytes(type, head.head_dim);
    staged.chunks[i] = load4(words(panel + at / n_word * 16));
    staged.scales[i] = 1.0f;
    if (type >= KV_Q8_0) {
      staged.scales[i] = kv_scale(panel + kv_cell_bytes(type, head.head_dim), at / 32);
    }
  }
}

/// To the round, [key][dimension of the slice], and behind it scales, [key][32 dimensions].
DEVICE_FN void store_values(u32 type, u32 dims, THREAD_REF(const StagedValues) staged,
                            u32 thread_id, SHARED(u32) round) {
  UNROLL for (u32 i = 0; i < round_chunks(type); ++i) {
    store4(round + 4 * (thread_id + ATTENTION_PART_THREADS * i), staged.chunks[i]);
    const u32 d = chunk_dim(type, dims, thread_id);
    if (type >= KV_Q8_0 && d % 32 == 0u) {
      const u32 scale = chunk_key(type, dims, thread_id, i) * (slice_dims(dims) / 32) + d / 32;
      round[round_scales(type) + scale] = bits_of_f32(staged.scales[i]);
    }
  }
}

/// A key's value, of the thread's dimensions, and weights of four heads.
struct WeighedKey {
  f32x4 weights;
  u32x4 value;  // as it is stored
  f32 scale;
};

/// Values in four bytes.
DEVICE_FN u32 part_values(u32 type) {
  return kv_word_values(type) / 4;
}

/// `key` of the round, whose weights are `weights`; own_dim: in the slice.
DEVICE_FN WeighedKey load_weighed(u32 type, u32 dims, SHARED(const f32) weights,
                                  SHARED(const u32) round, u32 key, u32 own_dim) {
  WeighedKey own;
  const u32x4 no_words = {0, 0, 0, 0};
  own.weights = load4(weights + key * PART_HEADS);
  own.value = no_words;
  own.scale = 1.0f;
  SHARED(const u32)
  from = round + own_dim / part_values(type) + key * (slice_dims(dims) / part_values(type));
  const u32 n = dims / part_values(type);
  if (n == 4u) {
    own.value = load4(from);
  } else if (n == 2u) {
    const u32x2 both = load2(from);
    own.value.x = both.x;
    own.value.y = both.y;
  } else {
    own.value.x = from[0];
  }
  if (type >= KV_Q8_0) {
    own.scale =
        f32_of_bits(round[round_scales(type) + own_dim / 32 + key * (slice_dims(dims) / 32)]);
  }
  return own;
}

/// Dimension i of the thread.
DEVICE_FN f32 weighed_value(u32 type, u32 dims, THREAD_REF(const WeighedKey) own, u32 own_dim,
                            u32 i) {
  const u32 n_part = part_values(type);
  const u32 in_part = dims >= n_part ? i % n_part : own_dim % n_part + i;
  return kv_part_value(type, word_part(own.value, i / n_part), in_part, own.scale);
}

/// Weights of a head's keys: largest score and sum.
struct HeadWeights {
  f32 largest;
  f32 sum;
};

/// Weights, PART_HEADS from key to key, of the head's keys, by its sixteen threads, of which each
/// has a lane of the sum; scores: of the head's part, which begins at a multiple of 16.
DEVICE_FN HeadWeights weigh_keys(KeyRange range, DEVICE(const f32) scores, u32 thread_id,
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
        weights[key * PART_HEADS] = own[i];
        result.sum = key >= begin && key < end ? result.sum + own[i] : result.sum;
      }
    }
  }
  result.sum = sum_lanes(result.sum);
  return result;
}

/// Sums of weighted values: of each of the thread's dimensions four heads.
struct PartSums {
  f32x4 dims[MOST_DIMS];
};

/// Some keys side by side.
struct WeighedKeys {
  WeighedKey keys[KEYS_TOGETHER];
};

DEVICE_FN WeighedKeys load_some(u32 type, u32 dims, SHARED(const f32) weights,
                                SHARED(const u32) round, u32 key, u32 own_dim) {
  WeighedKeys some;
  UNROLL for (u32 i = 0; i < KEYS_TOGETHER; ++i) {
    some.keys[i] = load_weighed(type, dims, weights, round, key + i, own_dim);
  }
  return some;
}

DEVICE_FN void add_key(u32 type, u32 dims, THREAD_REF(const WeighedKey) one, u32 own_dim,
                       THREAD_REF(PartSums) sums) {
  UNROLL for (u32 d = 0; d < dims; ++d) {
    sums.dims[d] = fma4(one.weights, weighed_value(type, dims, one, own_dim, d), sums.dims[d]);
  }
}

/// Adds keys begin ... end - 1 of the round; weights: of its first key. What comes next is read
/// while some are added.
DEVICE_FN void add_keys(u32 type, u32 dims, u32 begin, u32 end, SHARED(const f32) weights,
                        SHARED(const u32) round, u32 own_dim, THREAD_REF(PartSums) sums) {
  u32 key = begin;
  if (key + 2 * KEYS_TOGETHER <= end) {
    WeighedKeys even = load_some(type, dims, weights, round, key, own_dim);
    KEEP_LOOP for (; key + 2 * KEYS_TOGETHER <= end; key += 2 * KEYS_TOGETHER) {
      const WeighedKeys odd = load_some(type, dims, weights, round, key + KEYS_TOGETHER, own_dim);
      UNROLL for (u32 i = 0; i < KEYS_TOGETHER; ++i) {
        add_key(type, dims, even.keys[i], own_dim, sums);
      }
      const u32 next = key + 3 * KEYS_TOGETHER <= end ? key + 2 * KEYS_TOGETHER : begin;
      even = load_some(type, dims, weights, round, next, own_dim);
      UNROLL for (u32 i = 0; i < KEYS_TOGETHER; ++i) {
        add_key(type, dims, odd.keys[i], own_dim, sums);
      }
    }
  }
  KEEP_LOOP for (; key < end; ++key) {
    const WeighedKey one = load_weighed(type, dims, weights, round, key, own_dim);
    add_key(type, dims, one, own_dim, sums);
  }
}

/// Where a threadgroup is.
struct PartPlace {
  u32 row;
  u32 position;
  u32 first_key;
  u32 n_parts;  // that the row sees
  u32 group;
  u32 n_groups;
  u32 thread_id;
  u32 lane;
};

/// All that a threadgroup does, with `dims` dimensions a thread; `n_halves`: 2 where a threadgroup
/// takes half of the heads, else 1. All threads call wait_for_kernel_before().
DEVICE_FN void add_parts(u32 type, u32 dims, u32 n_halves, PARAMS(AttentionParams) p, HeadRun run,
                         PartPlace place, DEVICE(const i32) table, DEVICE(const f32) scores,
                         DEVICE(const u8) values, DEVICE(f32) partials, SHARED(f32) weights,
                         SHARED(u32) round) {
  const KvHead kv_head = {p.head_dim, p.n_kv_heads, run.kv_head};
  const u32 n_slices = (p.head_dim + slice_dims(dims) - 1u) / slice_dims(dims);
  const u32 n_items = place.n_parts * n_slices * n_halves;
  const u32 head = place.thread_id / N_LANES;
  const u32 own_dim = place.thread_id % PART_COLUMNS * dims;
  const u32 first_head = place.thread_id / PART_COLUMNS * PART_HEADS;  // of the thread's sums
  const u64 first_record = (u64(place.row) * p.n_heads + run.first_head) * p.n_parts;
  StagedValues staged;
  StagedValues next;
  bool has_waited = false;
  for (u32 item = place.group; item < n_items; item += place.n_groups) {
    const u32 part = place.first_key / ATTENTION_PART_KEYS + item / n_halves / n_slices;
    const u32 first_dim = item / n_halves % n_slices * slice_dims(dims);
    const bool is_own =
        first_head < run.n_heads && (n_halves == 1u || first_head / PART_HEADS == item % n_halves);
    const KeyRange range = keys_of_part(part, place.position, place.first_key);
    const u32 begin = range.begin - range.start;
    const u32 end = range.end - range.start;
    const u32 n_round = round_keys(type, dims);
    u32 start = begin / n_round * n_round;
    const u32 lane_block = block_of_lane(table, range, place.lane);
    // Of a row alone only its own value is not in the cache yet.
    const bool is_early = !has_waited && p.is_alone != 0u;
    const u32 own_key = place.position - range.start;
    if (is_early) {
      load_values(type, dims, kv_head, lane_block, values, range, start, first_dim, place.thread_id,
                  staged);
      load_values(type, dims, kv_head, lane_block, values, range, start + n_round, first_dim,
                  place.thread_id, next);
    }
    if (!has_waited) {
      wait_for_kernel_before();
      has_waited = true;
    }
    if (!is_early || own_key < start + 2 * n_round) {
      load_values(type, dims, kv_head, lane_block, values, range, start, first_dim, place.thread_id,
                  staged);
      load_values(type, dims, kv_head, lane_block, values, range, start + n_round, first_dim,
                  place.thread_id, next);
    }
    const HeadWeights head_weights = weigh_keys(
        range,
        scores + (first_record + min_u32(head, run.n_heads - 1u) * p.n_parts + part) *
                     ATTENTION_PART_KEYS,
        place.thread_id,
        weights + (head / PART_HEADS * ATTENTION_PART_KEYS * PART_HEADS + head % PART_HEADS));
    if (first_dim == 0u && item % n_halves == 0u && head < run.n_heads &&
        place.thread_id % N_LANES == 0u) {
      DEVICE(f32)
      record = partials + (first_record + head * p.n_parts + part) * (p.head_dim + 2u);
      record[p.head_dim] = head_weights.largest;
      record[p.head_dim + 1u] = head_weights.sum;
    }
    SHARED(const f32) own_weights = weights + first_head * ATTENTION_PART_KEYS;
    PartSums sums;
    UNROLL for (u32 d = 0; d < dims; ++d) {
      sums.dims[d] = make4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    // By turns, since what is on its way cannot move from register to register.
    for (; start < end; start += 2 * n_round) {
      store_values(type, dims, staged, place.thread_id, round);
      if (start + 2 * n_round < end) {
        load_values(type, dims, kv_head, lane_block, values, range, start + 2 * n_round, first_dim,
                    place.thread_id, staged);
      }
      group_barrier();
      if (is_own) {
        add_keys(type, dims, max_u32(start, begin) - start, min_u32(n_round, end - start),
                 own_weights + start * PART_HEADS, round, own_dim, sums);
      }
      group_barrier();
      const u32 second = start + n_round;
      if (second < end) {
        store_values(type, dims, next, place.thread_id, round);
        if (second + 2 * n_round < end) {
          load_values(type, dims, kv_head, lane_block, values, range, second + 2 * n_round,
                      first_dim, place.thread_id, next);
        }
        group_barrier();
        if (is_own) {
          add_keys(type, dims, 0, min_u32(n_round, end - second), own_weights + second * PART_HEADS,
                   round, own_dim, sums);
        }
        group_barrier();
      }
    }
    UNROLL for (u32 d = 0; d < dims; ++d) {
      const f32 four[4] = {sums.dims[d].x, sums.dims[d].y, sums.dims[d].z, sums.dims[d].w};
      UNROLL for (u32 i = 0; i < PART_HEADS; ++i) {
        if (is_own && first_head + i < run.n_heads && first_dim + own_dim + d < p.head_dim) {
          partials[(first_record + (first_head + i) * p.n_parts + part) * (p.head_dim + 2u) +
                   first_dim + own_dim + d] = four[i];
        }
      }
    }
  }
  if (!has_waited) {
    wait_for_kernel_before();
  }
}

#define ATTENTION_PARTS_KERNEL(name, type)                                                        \
  WIDE_EARLY_KERNEL(name, ATTENTION_PART_THREADS, AttentionParams, BUFFER(0, const u32, counts),  \
                    BUFFER(1, const f32, scores), BUFFER(2, const i32, positions),                \
                    BUFFER(3, const i32, sequences), BUFFER(4, const i32, tables),                \
                    BUFFER(5, const u8, values), BUFFER(6, f32, partials)) {                      \
    SHARED_ARRAY(f32, weights, ATTENTION_MAX_HEADS* ATTENTION_PART_KEYS);                         \
    SHARED_ARRAY(u32, round, ROUND_WORDS);                                                        \
    PartPlace place = {k_group.y, 0, 0, 0, k_group.z, k_grid_size.z, k_thread.x, k_lane};         \
    const HeadRun run = head_run(p, k_group.x, ATTENTION_MAX_HEADS);                              \
    u32 sequence = 0;                                                                             \
    if (place.row < counts[0]) {                                                                  \
      sequence = u32(sequences[place.row]);                                                       \
      place.position = u32(positions[place.row]);                                                 \
      place.first_key = first_key_seen(place.position, p.window);                                 \
      place.n_parts =                                                                             \
          place.position / ATTENTION_PART_KEYS - place.first_key / ATTENTION_PART_KEYS + 1u;      \
    }                                                                                             \
    DEVICE(const i32) table = tables + u64(sequence) * p.table_stride;                            \
    /* finer slices while there are too few parts */                                              \
    const u32 slices = place.n_parts * ((p.head_dim + PART_COLUMNS - 1u) / PART_COLUMNS);         \
    if (slices <= p.groups_at_once) {                                                             \
      add_parts(type, 1, 2u * slices <= p.groups_at_once ? 2u : 1u, p, run, place, table, scores, \
                values, partials, weights, round);                                                \
    } else if (slices <= 2u * p.groups_at_once) {                                                 \
      add_parts(type, 2, 1, p, run, place, table, scores, values, partials, weights, round);      \
    } else {                                                                                      \
      add_parts(type, 4, 1, p, run, place, table, scores, values, partials, weights, round);      \
    }                                                                                             \
  }

ATTENTION_PARTS_KERNEL(attention_parts_f32, KV_F32)
ATTENTION_PARTS_KERNEL(attention_parts_f16, KV_F16)
ATTENTION_PARTS_KERNEL(attention_parts_bf16, KV_BF16)
ATTENTION_PARTS_KERNEL(attention_parts_q8_0, KV_Q8_0)
ATTENTION_PARTS_KERNEL(attention_parts_q4_0, KV_Q4_0)

#define PARTS_AT_ONCE 32u  // asked for before the first is used
#define FACTORS 4u         // of a part, in shared memory: keep, take, sum, nothing

/// The largest of the maxima of the lanes up to this one.
DEVICE_FN f32 largest_up_to(f32 maximum, u32 lane) {
  for (u32 distance = 1; distance < 32u; distance *= 2) {
    const f32 before = shuffle(maximum, lane >= distance ? lane - distance : lane);
    maximum = before > maximum ? before : maximum;
  }
  return maximum;
}

/// A dimension of some parts.
struct SomeParts {
  f32 values[PARTS_AT_ONCE];
};

/// The first `n` parts, at most PARTS_AT_ONCE.
DEVICE_FN SomeParts load_parts(DEVICE(const f32) parts, u32 record, u32 n) {
  SomeParts some;
  UNROLL for (u32 j = 0; j < PARTS_AT_ONCE; ++j) {
    some.values[j] = 0.0f;
    if (j < n) {
      some.values[j] = parts[j * record];
    }
  }
  return some;
}

EARLY_KERNEL(attention_combine_f32, ATTENTION_COMBINE_THREADS, AttentionParams,
             BUFFER(0, const u32, counts), BUFFER(1, const f32, partials),
             BUFFER(2, const i32, positions), BUFFER(3, const f32, gate), BUFFER(4, f32, y)) {
  SHARED_ARRAY(f32, factors, FACTORS * ATTENTION_COMBINE_THREADS);
  SHARED_ARRAY(f32, maxima, ATTENTION_COMBINE_THREADS / 32);
  const u32 row = k_group.y;
  u32 position = 0;
  if (row < counts[0]) {
    position = u32(positions[row]);
  }
  wait_for_kernel_before();
  if (row >= counts[0]) {
    return;
  }
  const u32 first = first_key_seen(position, p.window) / ATTENTION_PART_KEYS;
  const u32 n = position / ATTENTION_PART_KEYS - first + 1u;
  const u32 record = p.head_dim + 2u;
  const u32 n_slices = (p.head_dim + ATTENTION_COMBINE_THREADS - 1u) / ATTENTION_COMBINE_THREADS;
  const u32 in_row = k_group.x / n_slices;
  const u64 head = u64(row) * p.n_heads + in_row;
  DEVICE(const f32) parts = partials + (head * p.n_parts + first) * record;
  const u32 own_dim = k_group.x % n_slices * ATTENTION_COMBINE_THREADS + k_thread.x;
  const u32 d = min_u32(own_dim, p.head_dim - 1u);
  f32 row_gate = 0.0f;
  if (p.has_gate != 0u) {
    row_gate = gate[u64(row) * p.gate_stride + in_row * p.gate_period + p.gate_start + d];
  }
  f32 value = parts[d];
  f32 sum = parts[p.head_dim + 1u];
  f32 maximum = parts[p.head_dim];
  for (u32 begin = 1; begin < n; begin += ATTENTION_COMBINE_THREADS) {
    const u32 n_now = min_u32(n - begin, ATTENTION_COMBINE_THREADS);
    DEVICE(const f32) now = parts + u64(begin) * record;
    DEVICE(const f32) own = now + min_u32(k_thread.x, n_now - 1u) * record;
    const f32 next = own[p.head_dim];
    const f32 next_sum = own[p.head_dim + 1u];
    SomeParts some = load_parts(now + d, record, n_now);
    f32 larger = largest_up_to(next, k_lane);
    if (k_lane == 31u) {
      maxima[k_simdgroup] = larger;
    }
    group_barrier();
    // The largest of all parts before the simdgroup's.
    for (u32 i = 0; i < k_simdgroup; ++i) {
      maximum = maxima[i] > maximum ? maxima[i] : maximum;
    }
    larger = larger > maximum ? larger : maximum;
    const f32 in_front = shuffle(larger, k_lane == 0u ? 0u : k_lane - 1u);
    const f32 before = k_lane == 0u ? maximum : in_front;
    store4(factors + FACTORS * k_thread.x,
           make4(exp_f32(before - larger), exp_f32(next - larger), next_sum, 0.0f));
    for (u32 i = k_simdgroup; i < ATTENTION_COMBINE_THREADS / 32; ++i) {
      maximum = maxima[i] > maximum ? maxima[i] : maximum;
    }
    group_barrier();
    KEEP_LOOP for (u32 i = 0; i < n_now; i += PARTS_AT_ONCE) {
      UNROLL for (u32 j = 0; j < PARTS_AT_ONCE; ++j) {
        if (i + j < n_now) {
          const f32x4 factor = load4(factors + FACTORS * (i + j));
          sum = fma_f32(factor.y, factor.z, factor.x * sum);
          value = fma_f32(factor.y, some.values[j], factor.x * value);
        }
      }
      if (i + PARTS_AT_ONCE < n_now) {
        some =
            load_parts(now + ((i + PARTS_AT_ONCE) * record + d), record, n_now - i - PARTS_AT_ONCE);
      }
    }
    group_barrier();
  }
  if (own_dim < p.head_dim) {
    f32 result = value / sum;
    if (p.has_gate != 0u) {
      result = result * activate_f32(p.activation, row_gate);
    }
    y[head * p.head_dim + d] = result;
  }
}

}  // namespace hearth::backend::gpu
