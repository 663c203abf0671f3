// For several rows of the step. A threadgroup multiplies one strip after the other, and its
// simdgroups take turns with the blocks of 16 rows by 256 weights that strips consist of; each has
// the next block in registers while it multiplies one. What blocks say goes to shared memory, where
// a thread per result adds it up in order of k. Of floats, 512 threads bring chunks of eight rows
// of the matrix and of all rows of the step to shared memory, and a thread has the four chains of a
// result. 31 KiB of shared memory. Bound
// by the latency of the input for small matrices, by memory for large ones.

#include "backend/gpu/kernels/strips.h"

#include "backend/gpu/kernels/strip_group.h"
#include "backend/gpu/kernels/strip_parts.h"
#include "backend/gpu/kernels/strip_sums.h"

namespace hearth::backend::gpu {

/// What load_row_lot brought becomes `codes` [rows][strip_row_words], `digits`
/// [rows][blocks][STRIP_DIGIT_BYTES] and `scales` [rows][blocks].
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
  DEVICE(const u8) weight = strip_weight(group.part, weight0, weight1, weight2, weight3);
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
    multiply_float_rows(p, group.part, matrix, first_row, first_step_row,
                        min_u32(n_step_rows, first_step_row + p.group_rows), x, norm, row_gate,
                        residual, work, codes, inverses, k_thread.x, loaded, y);
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
