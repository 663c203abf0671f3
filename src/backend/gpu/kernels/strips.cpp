// For several rows of the step. A threadgroup multiplies one strip after the other, and its
// simdgroups take turns with the blocks of 16 rows by 256 weights that strips consist of; each has
// the next block in registers while it multiplies one. What blocks say goes to shared memory, where
// a thread per result adds it up in order of k. Of floats, 512 threads bring chunks of eight rows
// of the matrix and of all rows of the step to shared memory, and a thread has the four chains of a
// result. 31 KiB of shared memory. Bound
// by the latency of the input for small matrices, by memory for large ones.

#include "backend/gpu/kernels/strips.h"

#include "backend/gpu/kernels/strip_group.h"
#include "backend/gpu/kernels/strip_sums.h"

namespace hearth::backend::gpu {

#define ROW_ITEMS (STRIP_LOT_BLOCKS / STRIP_SIMDGROUPS)  // blocks of rows that a simdgroup has

/// What a simdgroup brings of all rows: blocks simdgroup, simdgroup + STRIP_SIMDGROUPS, ...
DEVICE_FN void load_row_lot(DEVICE(const f32) x, u32 n_items, u32 simdgroup, u32 lane,
                            THREAD(f32x4) values) {
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    const u32 item = simdgroup + i * STRIP_SIMDGROUPS;
    if (item < n_items) {
      DEVICE(const f32) from = x + (256 * item + LANE_VALUES * lane);
      values[2 * i] = load4(from);
      values[2 * i + 1] = load4(from + 4);
    }
  }
}

/// 1 / sqrt(mean + eps) of rows, two of which a simdgroup adds up; load_row_lot has brought them to
/// the first cache.
DEVICE_FN void norm_row_lot(PARAMS(StripParams) p, DEVICE(const f32) x, u32 n_rows,
                            SHARED(f32) inverses, u32 simdgroup, u32 lane) {
  const u32 row = 2 * simdgroup + lane / N_LANES;
  if (2 * simdgroup < n_rows) {
    const u64 from = u64(min_u32(row, n_rows - 1u)) * p.n;
    const f32 sum = sum_lanes(add_squares_device(x + from, p.n, lane, 0.0f));
    if (lane % N_LANES == 0u && row < n_rows) {
      inverses[row] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
    }
  }
}

/// What load_row_lot brought, normed.
DEVICE_FN void apply_norm(DEVICE(const f32) norm, SHARED(const f32) inverses, u32 n_blocks,
                          u32 n_items, u32 simdgroup, u32 lane, THREAD(f32x4) values) {
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    const u32 item = simdgroup + i * STRIP_SIMDGROUPS;
    if (item < n_items) {
      const f32 inverse = inverses[item / n_blocks];
      DEVICE(const f32) weights = norm + (256 * (item % n_blocks) + LANE_VALUES * lane);
      values[2 * i] = values[2 * i] * inverse * load4(weights);
      values[2 * i + 1] = values[2 * i + 1] * inverse * load4(weights + 4);
    }
  }
}

/// It becomes `codes` [rows][strip_row_words], `digits` [rows][blocks][STRIP_DIGIT_BYTES] and
/// `scales` [rows][blocks].
DEVICE_FN void quantize_row_lot(u32 n_blocks, u32 n_items, u32 simdgroup, u32 lane,
                                THREAD(const f32x4) values, SHARED(u32) codes, SHARED(u8) digits,
                                SHARED(f32) scales) {
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    const u32 item = simdgroup + i * STRIP_SIMDGROUPS;
    if (item < n_items) {
      const u32 row = item / n_blocks;
      const u32 block = item - row * n_blocks;
      quantize_block(values[2 * i], values[2 * i + 1], lane,
                     codes + (row * strip_row_words(n_blocks) + block * STRIP_BLOCK_WORDS),
                     digits + item * STRIP_DIGIT_BYTES, scales + item);
    }
  }
}

#define FLOAT_CHUNK 256                 // values of a row of the matrix
#define FLOAT_CHUNKS 4                  // that are on their way at once
#define FLOAT_STRIDE (FLOAT_CHUNK + 4)  // neighbouring rows meet different banks

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

/// Of what load_row_lot brought the block that begins at k, to chunks of rows.
DEVICE_FN void store_row_chunks(u32 n_blocks, u32 n_items, u32 k, u32 simdgroup, u32 lane,
                                THREAD(const f32x4) values, SHARED(f32) chunks) {
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    const u32 item = simdgroup + i * STRIP_SIMDGROUPS;
    if (item < n_items && item % n_blocks == k / FLOAT_CHUNK) {
      SHARED(f32) to = chunks + (item / n_blocks * FLOAT_STRIDE + LANE_VALUES * lane);
      store4(to, values[2 * i]);
      store4(to + 4, values[2 * i + 1]);
    }
  }
}

/// Goes on with the four chains of a result over a chunk.
DEVICE_FN f32x4 add_chunk(SHARED(const u32) weights, SHARED(const f32) x, f32x4 sums) {
  for (u32 k = 0; k < FLOAT_CHUNK; k += 4) {
    const u32x4 w = load4(weights + k);
    const f32x4 v = load4(x + k);
    sums.x = fma_f32(f32_of_bits(w.x), v.x, sums.x);
    sums.y = fma_f32(f32_of_bits(w.y), v.y, sums.y);
    sums.z = fma_f32(f32_of_bits(w.z), v.z, sums.z);
    sums.w = fma_f32(f32_of_bits(w.w), v.w, sums.w);
  }
  return sums;
}

/// Eight rows of floats, whose first chunks are in `loaded`, times the rows that load_row_lot
/// brought: thread 4 o + r % 4 + 32 (r / 4) returns the four chains of matrix row o and row r.
DEVICE_FN f32x4 multiply_float_lot(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                                   u32 n_out, u32 n_rows, THREAD(const f32x4) values,
                                   SHARED(f32) rows, SHARED(u32) chunk, u32 thread_index,
                                   THREAD(f32x4) loaded) {
  const u32 lane = thread_index % 32;
  const u32 simdgroup = thread_index / 32;
  const u32 n_blocks = p.n / 256;
  const u32 n_items = n_rows * n_blocks;
  SHARED(u32) to = chunk + (thread_index / 64 * FLOAT_STRIDE + 4 * (thread_index % 64));
  f32x4 sums = make4(0, 0, 0, 0);
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
        const u32x4 bits = {bits_of_f32(now[i].x), bits_of_f32(now[i].y), bits_of_f32(now[i].z),
                            bits_of_f32(now[i].w)};
        store4(to, bits);
        store_row_chunks(n_blocks, n_items, k, simdgroup, lane, values, rows);
        group_barrier();
        if (4 * simdgroup < n_rows) {
          const u32 row = min_u32(4 * simdgroup + lane % 4, n_rows - 1u);
          sums = add_chunk(chunk + lane / 4 * FLOAT_STRIDE, rows + row * FLOAT_STRIDE, sums);
        }
      }
    }
  }
  return sums;
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
      u32x4 pairs[STRIP_PAIRS];                                                                    \
      load_pairs(row_codes + block * STRIP_BLOCK_WORDS, lane, pairs);                              \
      StripProduct product;                                                                        \
      format##_tile_multiply(now, pairs, mine, product);                                           \
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
  SHARED_ARRAY(u32, codes, (STRIP_LOT_BLOCKS * STRIP_BLOCK_WORDS + STRIP_MAX_ROWS * STRIP_ROW_GAP));
  SHARED_ARRAY(u8, digits, (STRIP_LOT_BLOCKS * STRIP_DIGIT_BYTES));
  SHARED_ARRAY(f32, scales, STRIP_LOT_BLOCKS);
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
    if (first_step_row >= n_step_rows) {
      return;
    }
    const u32 n_rows = min_u32(n_step_rows - first_step_row, p.group_rows);
    const u32 n_items = n_rows * group.n_blocks;
    DEVICE(const f32) x_rows = x + u64(first_step_row) * p.n;
    f32x4 values[2 * ROW_ITEMS];
    load_row_lot(x_rows, n_items, k_simdgroup, k_lane, values);
    if (p.has_norm != 0u) {
      norm_row_lot(p, x_rows, n_rows, inverses, k_simdgroup, k_lane);
      group_barrier();
      apply_norm(norm, inverses, group.n_blocks, n_items, k_simdgroup, k_lane, values);
    }
    const f32x4 sums = multiply_float_lot(p, matrix, first_row, n_out, n_rows, values, work, codes,
                                          k_thread.x, loaded);
    const u32 row = 4 * k_simdgroup + k_lane % 4;
    const u32 output = first_row + k_lane / 4;
    if (row < n_rows && output < n_out) {
      const u64 to = u64(first_step_row + row) * n_out + output;
      const ResultPlace place = {0, 0, 0, row, to, true};
      const StripEnd ending = strip_end(p, group.part, first_step_row, place, row_gate, residual);
      y[to] = strip_result(p, group.part, (sums.x + sums.y) + (sums.z + sums.w), ending);
    }
    return;
  }

  const u32 teams = max_u32(STRIP_SIMDGROUPS / group.n_units, 1u);
  const StripMatrix matrix = strip_matrix(type, group.n_blocks);
  StripItem item = first_item(group.begin, teams, k_simdgroup, group.n_units);
  StripTile tile;
  if (item.strip < group.end) {
    tile_load(type, (is_second(item, group) ? weight1 : weight) + item_tile(item, group, matrix),
              k_lane, tile);
  }
  wait_for_kernel_before();
  if (first_step_row >= n_step_rows) {
    return;
  }
  const u32 n_rows = min_u32(n_step_rows - first_step_row, p.group_rows);
  DEVICE(const f32) x_rows = x + u64(first_step_row) * p.n;
  const u32 n_items = n_rows * group.n_blocks;
  f32x4 values[2 * ROW_ITEMS];
  load_row_lot(x_rows, n_items, k_simdgroup, k_lane, values);
  if (p.has_norm != 0u) {
    norm_row_lot(p, x_rows, n_rows, inverses, k_simdgroup, k_lane);
    group_barrier();
    apply_norm(norm, inverses, group.n_blocks, n_items, k_simdgroup, k_lane, values);
  }
  quantize_row_lot(group.n_blocks, n_items, k_simdgroup, k_lane, values, codes, digits, scales);
  group_barrier();

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
