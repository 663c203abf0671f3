// For several rows of the step. A threadgroup multiplies one strip after the other, and its
// simdgroups take turns with the blocks of 16 rows by 256 weights that strips consist of; each has
// the next block in registers while it multiplies one. What blocks say goes to shared memory, where
// a thread per result adds it up in order of k. Of floats, 512 threads bring chunks of eight rows
// to shared memory, and a lane has each of the four chains of a row. 30 KiB of shared memory. Bound
// by the latency of the input for small matrices, by memory for large ones.

#include "backend/gpu/kernels/strips.h"

#include "backend/gpu/kernels/small_strips.h"
#include "backend/gpu/kernels/strip_group.h"
#include "backend/gpu/kernels/strip_sums.h"

namespace hearth::backend::gpu {

/// 1 / sqrt(mean + eps) of rows: as many at a time as `work` holds go through it, a simdgroup adds
/// up each; of longer rows a part at a time.
DEVICE_FN void norm_rows(PARAMS(StripParams) p, DEVICE(const f32) x, u32 n_rows, SHARED(f32) work,
                         SHARED(f32) inverses, u32 thread_index) {
  const u32 simdgroup = thread_index / 32;
  const u32 at_once = n_rows == 1u ? 1u : max_u32(STRIP_WORK / p.n, 1u);
  for (u32 first = 0; first < n_rows; first += at_once) {
    const u32 n = min_u32(n_rows - first, at_once);
    f32 sum = 0.0f;
    for (u32 begin = 0; begin < p.n; begin += STRIP_WORK) {
      const u32 length = min_u32(p.n - begin, STRIP_WORK);
      group_barrier();  // what was there has been added up
      copy_values(x + (u64(first) * p.n + begin), n * length, work, thread_index, STRIP_THREADS);
      group_barrier();
      if (simdgroup < n) {
        sum = add_squares(work + simdgroup * length, length, thread_index % 32, sum);
      }
    }
    if (simdgroup < n) {
      sum = sum_lanes(sum);
      if (thread_index % 32 == 0u) {
        inverses[first + simdgroup] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
      }
    }
  }
  group_barrier();
}

/// Rows become `codes` [rows][strip_row_words], `digits` [rows][blocks][STRIP_DIGIT_BYTES] and
/// `scales` [rows][blocks]; with is_small as small_strips() takes them, without digits.
DEVICE_FN void quantize_rows(PARAMS(StripParams) p, bool is_small, DEVICE(const f32) x,
                             DEVICE(const f32) norm, SHARED(const f32) inverses, u32 n_blocks,
                             u32 n_rows, u32 simdgroup, u32 lane, SHARED(u32) codes,
                             SHARED(u8) digits, SHARED(f32) scales) {
  const u32 teams = max_u32(STRIP_SIMDGROUPS / n_blocks, 1u);
  StripItem item = first_item(0, teams, simdgroup, n_blocks);
  while (item.strip < n_rows) {  // a row
    const u32 in_row = 256 * item.unit + LANE_VALUES * lane;
    DEVICE(const f32) from = x + (u64(item.strip) * p.n + in_row);
    f32x4 low = load4(from);
    f32x4 high = load4(from + 4);
    if (p.has_norm != 0u) {
      const f32 inverse = inverses[item.strip];
      low = low * inverse * load4(norm + in_row);
      high = high * inverse * load4(norm + in_row + 4);
    }
    const u32 block = item.strip * n_blocks + item.unit;
    if (is_small) {
      quantize_small_block(
          low, high, lane,
          codes + (item.strip * small_row_words(n_blocks) + item.unit * STRIP_BLOCK_WORDS),
          scales + (item.unit * SMALL_RUNS * n_rows + item.strip), n_rows);
    } else {
      quantize_block(
          low, high, lane,
          codes + (item.strip * strip_row_words(n_blocks) + item.unit * STRIP_BLOCK_WORDS),
          digits + block * STRIP_DIGIT_BYTES, scales + block);
    }
    item = next_item(item, teams, simdgroup, n_blocks);
  }
}

#define FLOAT_CHUNK 256  // values of a row of the matrix
#define FLOAT_CHUNKS 4   // that are on their way at once
// From chain to chain: the values of every fourth k lie together.
#define FLOAT_CHAIN (FLOAT_CHUNK / 4 + 4)
#define FLOAT_PASSES ((STRIP_WORK + 4 * STRIP_THREADS - 1) / (4 * STRIP_THREADS))

/// From chain to chain of a row of the input: not a multiple of all banks.
DEVICE_FN u32 float_x_chain(u32 n) {
  return n / 4 + 4;
}

/// The thread's four floats of each of FLOAT_CHUNKS chunks of eight rows from value `begin` on.
DEVICE_FN void load_chunks(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                           u32 n_out, u32 begin, u32 thread_index, THREAD(f32x4) loaded) {
  const u32 row = min_u32(first_row + thread_index / 64, n_out - 1u);
  UNROLL for (u32 i = 0; i < FLOAT_CHUNKS; ++i) {
    const u32 k = begin + i * FLOAT_CHUNK + 4 * (thread_index % 64);
    if (k < p.n) {
      loaded[i] = load4(matrix + (u64(row) * p.n + k));
    }
  }
}

/// Goes on with a chain over a chunk; the next steps are read while some are added.
DEVICE_FN f32 add_chain(SHARED(const u32) weights, SHARED(const f32) x, f32 sum) {
  u32x4 w = load4(weights);
  f32x4 v = load4(x);
  for (u32 step = 4; step <= FLOAT_CHUNK / 4; step += 4) {
    const u32 next = step % (FLOAT_CHUNK / 4);
    const u32x4 next_w = load4(weights + next);
    const f32x4 next_v = load4(x + next);
    sum = fma_f32(f32_of_bits(w.x), v.x, sum);
    sum = fma_f32(f32_of_bits(w.y), v.y, sum);
    sum = fma_f32(f32_of_bits(w.z), v.z, sum);
    sum = fma_f32(f32_of_bits(w.w), v.w, sum);
    w = next_w;
    v = next_v;
  }
  return sum;
}

/// Eight rows of floats times a row that is in `x` already: lane 4 r + c of the first simdgroup
/// returns chain c of row r.
DEVICE_FN f32 multiply_floats(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                              u32 n_out, SHARED(const f32) x, SHARED(u32) chunk, u32 thread_index,
                              THREAD(f32x4) loaded) {
  const u32 lane = thread_index % 32;
  SHARED(u32) to = chunk + (thread_index / 64 * 4 * FLOAT_CHAIN + thread_index % 64);
  f32 sum = 0.0f;
  for (u32 begin = 0; begin < p.n; begin += FLOAT_CHUNKS * FLOAT_CHUNK) {
    f32x4 now[FLOAT_CHUNKS];
    UNROLL for (u32 i = 0; i < FLOAT_CHUNKS; ++i) {
      now[i] = loaded[i];
    }
    const u32 next = begin + FLOAT_CHUNKS * FLOAT_CHUNK;
    load_chunks(p, matrix, first_row, n_out, next < p.n ? next : 0u, thread_index, loaded);
    UNROLL for (u32 i = 0; i < FLOAT_CHUNKS; ++i) {
      const u32 k = begin + i * FLOAT_CHUNK;
      if (k < p.n) {
        group_barrier();  // the chunk before has been added up
        to[0] = bits_of_f32(now[i].x);
        to[FLOAT_CHAIN] = bits_of_f32(now[i].y);
        to[2 * FLOAT_CHAIN] = bits_of_f32(now[i].z);
        to[3 * FLOAT_CHAIN] = bits_of_f32(now[i].w);
        group_barrier();
        if (thread_index < 32u) {
          sum = add_chain(chunk + lane * FLOAT_CHAIN, x + (lane % 4 * float_x_chain(p.n) + k / 4),
                          sum);
        }
      }
    }
  }
  return sum;
}

/// A row of the input, normed, to four chains.
DEVICE_FN void norm_floats(PARAMS(StripParams) p, DEVICE(const f32) x, DEVICE(const f32) norm,
                           SHARED(f32) chains, SHARED(f32) inverse, u32 thread_index) {
  group_barrier();  // the row before has been multiplied
  copy_values(x, p.n, chains, thread_index, STRIP_THREADS);
  group_barrier();
  f32 factor = 1.0f;
  if (p.has_norm != 0u) {
    if (thread_index < 32u) {
      const f32 sum = sum_lanes(add_squares(chains, p.n, thread_index, 0.0f));
      if (thread_index == 0u) {
        inverse[0] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
      }
    }
    group_barrier();
    factor = inverse[0];
  }
  f32x4 values[FLOAT_PASSES];
  UNROLL for (u32 pass = 0; pass < FLOAT_PASSES; ++pass) {
    const u32 i = 4 * (pass * STRIP_THREADS + thread_index);
    if (i < p.n) {
      values[pass] = load4(chains + i);
      if (p.has_norm != 0u) {
        values[pass] = values[pass] * factor * load4(norm + i);
      }
    }
  }
  group_barrier();  // all have been read
  UNROLL for (u32 pass = 0; pass < FLOAT_PASSES; ++pass) {
    const u32 step = pass * STRIP_THREADS + thread_index;
    if (4 * step < p.n) {
      chains[step] = values[pass].x;
      chains[float_x_chain(p.n) + step] = values[pass].y;
      chains[2 * float_x_chain(p.n) + step] = values[pass].z;
      chains[3 * float_x_chain(p.n) + step] = values[pass].w;
    }
  }
}

/// The result that a thread adds up.
struct ResultPlace {
  u32 in_round;  // strip
  u32 kind;      // 1: of the second matrix of a pair
  u32 row;       // of the strip
  u32 column;
  u64 to;  // in y
  bool is_stored;
};

/// Result i of n_results in a round that begins with strip `first`; threads without one repeat the
/// last.
DEVICE_FN ResultPlace result_place(PARAMS(StripParams) p, THREAD_REF(const StripGroup) group,
                                   u32 n_rows, u32 first, u32 i, u32 n_results,
                                   u32 first_step_row) {
  const u32 mine = min_u32(i, n_results - 1u);
  const bool is_pair = p.is_pair != 0u;
  const u32 place = mine / (is_pair ? 2 * STRIP_ROWS : STRIP_ROWS);
  ResultPlace result;
  result.row = mine % STRIP_ROWS;
  result.kind = is_pair ? mine / STRIP_ROWS % 2 : 0u;
  result.in_round = place / n_rows;
  result.column = place - result.in_round * n_rows;
  const u32 output = (first + result.in_round) * STRIP_ROWS + result.row;
  result.to = u64(first_step_row + result.column) * p.n_out[group.part] + output;
  result.is_stored = i < n_results && result.kind == 0u && output < p.n_out[group.part];
  return result;
}

/// What the results wait for: asked for early.
struct StripEnd {
  f32 row_gate;
  f32 residual;
};

DEVICE_FN StripEnd strip_end(PARAMS(StripParams) p, u32 part, u32 first_step_row,
                             THREAD_REF(const ResultPlace) place, DEVICE(const f32) row_gate,
                             DEVICE(const f32) residual) {
  StripEnd end = {0.0f, 0.0f};
  if (place.is_stored && p.has_row_gate != 0u) {
    end.row_gate = row_gate[first_step_row + place.column];
  }
  if (place.is_stored && p.has_residual != 0u && part == 0u) {
    end.residual = residual[place.to];
  }
  return end;
}

/// What is stored for a product.
DEVICE_FN f32 strip_result(PARAMS(StripParams) p, u32 part, f32 product, StripEnd end) {
  f32 result = product;
  if (p.has_row_gate != 0u) {
    result = result * activate_f32(p.row_activation, end.row_gate);
  }
  return p.has_residual != 0u && part == 0u ? result + end.residual : result;
}

/// Multiplies the simdgroup's tiles of strips [begin, end), whose first is in `tile`; leaves there
/// the one that comes next.
#define MULTIPLY_STRIPS(format)                                                                    \
  DEVICE_FN void format##_strips(                                                                  \
      THREAD_REF(const StripGroup) group, StripMatrix matrix, DEVICE(const u8) first,              \
      DEVICE(const u8) second, u32 n_rows, u32 teams, u32 begin, u32 end, u32 simdgroup, u32 lane, \
      SHARED(const u32) codes, SHARED(const u8) digits, SHARED(f32) work,                          \
      THREAD_REF(StripItem) item, THREAD_REF(StripTile) tile) {                                    \
    const u32 column = min_u32(lane / 4, n_rows - 1u);                                             \
    SHARED(const u32) row_codes = codes + column * strip_row_words(group.n_blocks);                \
    SHARED(const u8) row_digits = digits + column * group.n_blocks * STRIP_DIGIT_BYTES;            \
    while (item.strip < end) {                                                                     \
      const StripTile now = tile;                                                                  \
      const u32 block = item_block(item, group);                                                   \
      SHARED(f32)                                                                                  \
      terms =                                                                                      \
          work + ((item.strip - begin) * group.n_units + item.unit) * STRIP_BLOCK_FLOATS(n_rows);  \
      item = next_item(item, teams, simdgroup, group.n_units);                                     \
      if (item.strip < group.end) {                                                                \
        format##_tile_load(                                                                        \
            (is_second(item, group) ? second : first) + item_tile(item, group, matrix), lane,      \
            tile);                                                                                 \
      }                                                                                            \
      const StripCodes mine = strip_codes(row_digits + block * STRIP_DIGIT_BYTES, lane);           \
      StripProduct product;                                                                        \
      format##_tile_multiply(now, row_codes + block * STRIP_BLOCK_WORDS, mine, product);           \
      store_product(product, n_rows, lane, terms);                                                 \
    }                                                                                              \
  }

MULTIPLY_STRIPS(q4_k)
MULTIPLY_STRIPS(q5_k)
MULTIPLY_STRIPS(q6_k)

EARLY_KERNEL(strip_projection, STRIP_THREADS, StripParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, row_gate),
             BUFFER(4, const f32, residual), BUFFER(5, const u8, weight0),
             BUFFER(6, const u8, weight1), BUFFER(7, const u8, weight2),
             BUFFER(8, const u8, weight3), BUFFER(9, f32, y0), BUFFER(10, f32, y1),
             BUFFER(11, f32, y2), BUFFER(12, f32, y3)) {
  SHARED_ARRAY(f32, work, STRIP_WORK);
  SHARED_ARRAY(u32, codes, (STRIP_MAX_BLOCKS * STRIP_BLOCK_WORDS + STRIP_MAX_ROWS * STRIP_ROW_GAP));
  SHARED_ARRAY(u8, digits, (STRIP_MAX_BLOCKS * STRIP_DIGIT_BYTES));
  SHARED_ARRAY(f32, scales, (STRIP_MAX_BLOCKS * SMALL_RUNS));
  SHARED_ARRAY(f32, inverses, STRIP_MAX_ROWS);
  const StripGroup group = strip_group(p, k_group.x);
  const u32 type = p.type[group.part];
  const u32 n_out = p.n_out[group.part];
  const u32 first_step_row = k_group.y * p.group_rows;
  const u32 n_step_rows = counts[p.axis];
  DEVICE(const u8)
  weight = group.part < 2u ? (group.part == 0u ? weight0 : weight1)
                           : (group.part == 2u ? weight2 : weight3);
  DEVICE(f32) y = strip_output(group.part, y0, y1, y2, y3);
  if (p.has_norm != 0u && 32 * k_thread.x < p.n) {
    prefetch(norm + 32 * k_thread.x);
  }
  if (type == STRIP_F32) {
    DEVICE(const f32) matrix = floats(weight);
    const u32 first_row = group.begin * STRIP_FLOAT_ROWS;
    f32x4 loaded[FLOAT_CHUNKS];
    load_chunks(p, matrix, first_row, n_out, 0, k_thread.x, loaded);
    wait_for_kernel_before();
    const u32 end = min_u32(n_step_rows, first_step_row + p.group_rows);
    for (u32 step_row = first_step_row; step_row < end; ++step_row) {
      norm_floats(p, x + u64(step_row) * p.n, norm, work, inverses, k_thread.x);
      f32 sum = multiply_floats(p, matrix, first_row, n_out, work, codes, k_thread.x, loaded);
      if (k_thread.x < 32u) {
        sum = sum + shuffle_xor(sum, 1);
        sum = sum + shuffle_xor(sum, 2);
        const u32 output = first_row + k_lane / 4;
        const ResultPlace place = {0,
                                   0,
                                   0,
                                   step_row - first_step_row,
                                   u64(step_row) * n_out + output,
                                   k_lane % 4 == 0u && output < n_out};
        const StripEnd ending = strip_end(p, group.part, first_step_row, place, row_gate, residual);
        if (place.is_stored) {
          y[place.to] = strip_result(p, group.part, sum, ending);
        }
      }
    }
    return;
  }

  const bool is_small = STRIP_IS_SMALL(type);
  const u32 n_units = is_small ? group.n_blocks : group.n_units;
  const u32 teams = max_u32(STRIP_SIMDGROUPS / n_units, 1u);
  const StripMatrix matrix = strip_matrix(type, group.n_blocks);
  StripItem item = first_item(group.begin, teams, k_simdgroup, n_units);
  StripTile tile;
  if (item.strip < group.end) {
    load_tile(type, (is_second(item, group) ? weight1 : weight) + item_tile(item, group, matrix),
              k_lane, tile);
  }
  wait_for_kernel_before();
  if (first_step_row >= n_step_rows) {
    return;
  }
  const u32 n_rows = min_u32(n_step_rows - first_step_row, p.group_rows);
  DEVICE(const f32) x_rows = x + u64(first_step_row) * p.n;
  if (p.has_norm != 0u) {
    norm_rows(p, x_rows, n_rows, work, inverses, k_thread.x);
  }
  quantize_rows(p, is_small, x_rows, norm, inverses, group.n_blocks, n_rows, k_simdgroup, k_lane,
                codes, digits, scales);
  group_barrier();

  if (is_small) {
    small_strips(p, type, group, weight, weight1, first_step_row, n_rows, k_simdgroup, k_lane,
                 codes, scales, work, row_gate, residual, y, tile);
    return;
  }
  const u32 block_floats = STRIP_BLOCK_FLOATS(n_rows);
  for (u32 strip = group.begin; strip < group.end; strip += p.round_strips) {
    const u32 end = min_u32(strip + p.round_strips, group.end);
    const u32 n_results = (end - strip) * n_rows * STRIP_ROWS * (p.is_pair != 0u ? 2u : 1u);
    const ResultPlace first_place =
        result_place(p, group, n_rows, strip, k_thread.x, n_results, first_step_row);
    StripEnd ending = strip_end(p, group.part, first_step_row, first_place, row_gate, residual);
    if (type == STRIP_Q4_K) {
      q4_k_strips(group, matrix, weight, weight1, n_rows, teams, strip, end, k_simdgroup, k_lane,
                  codes, digits, work, item, tile);
    } else if (type == STRIP_Q5_K) {
      q5_k_strips(group, matrix, weight, weight1, n_rows, teams, strip, end, k_simdgroup, k_lane,
                  codes, digits, work, item, tile);
    } else {
      q6_k_strips(group, matrix, weight, weight1, n_rows, teams, strip, end, k_simdgroup, k_lane,
                  codes, digits, work, item, tile);
    }
    group_barrier();
    for (u32 begin = 0; begin < n_results; begin += STRIP_THREADS) {
      const ResultPlace place =
          result_place(p, group, n_rows, strip, begin + k_thread.x, n_results, first_step_row);
      if (begin != 0u) {
        ending = strip_end(p, group.part, first_step_row, place, row_gate, residual);
      }
      f32 result = sum_strip(
          work + (place.in_round * group.n_units + place.kind * group.n_blocks) * block_floats,
          n_rows, group.n_blocks, place.row, place.column, type != STRIP_Q6_K,
          scales + place.column * group.n_blocks);
      const f32 other = shuffle_xor(result, STRIP_ROWS);
      if (p.is_pair != 0u) {
        result = activate_f32(p.activation, result) * other;
      }
      if (place.is_stored) {
        y[place.to] = strip_result(p, group.part, result, ending);
      }
    }
    group_barrier();  // what blocks said has been used
  }
}

}  // namespace hearth::backend::gpu
