// For one row of the step. A simdgroup has one block of a row's codes, or every sixteenth; parts of
// its next tile are asked for as those of a tile have been used (kernels/row_tile.h); what tiles
// say goes to shared memory, where a thread per result adds it up in order of k. Of floats, chunks
// of eight rows pass through shared memory, where a lane of the first simdgroup has each of the
// four chains of a row. 32 KiB of shared memory. Bound by the latency of the input for small
// matrices, by memory for large ones.

#include "backend/gpu/kernels/row_parts.h"
#include "backend/gpu/kernels/strip_group.h"
#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {

/// The simdgroup's tiles of strips [begin, end), whose first is in `tile`; leaves there the one
/// that comes next.
#define MULTIPLY_ROW(format)                                                                       \
  DEVICE_FN void format##_row(                                                                     \
      THREAD_REF(const StripGroup) group, StripMatrix matrix, DEVICE(const u8) first,              \
      DEVICE(const u8) second, u32 teams, u32 begin, u32 end, u32 simdgroup, u32 lane,             \
      SHARED(const u32) codes, SHARED(const i32) sums, SHARED(const f32) scales, SHARED(f32) work, \
      THREAD_REF(StripItem) item, THREAD_REF(StripTile) tile) {                                    \
    while (item.strip < end) {                                                                     \
      const u32 block = item_block(item, group);                                                   \
      SHARED(f32)                                                                                  \
      terms = work + ((item.strip - begin) * group.n_units + item.unit) * ROW_TERMS;               \
      item = next_item(item, teams, simdgroup, group.n_units);                                     \
      RowProduct product;                                                                          \
      format##_row_multiply(                                                                       \
          tile, item.strip < group.end,                                                            \
          (is_second(item, group) ? second : first) + item_tile(item, group, matrix),              \
          format##_row_codes(codes + block * STRIP_BLOCK_WORDS, sums + block * ROW_SUMS, lane),    \
          lane, product);                                                                          \
      store_row_terms(product, scales[block], lane, terms);                                        \
    }                                                                                              \
  }

MULTIPLY_ROW(q4_k)
MULTIPLY_ROW(q5_k)
MULTIPLY_ROW(q6_k)

EARLY_KERNEL(strip_row, STRIP_THREADS, StripParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, row_gate),
             BUFFER(4, const f32, residual), BUFFER(5, const u8, weight0),
             BUFFER(6, const u8, weight1), BUFFER(7, const u8, weight2),
             BUFFER(8, const u8, weight3), BUFFER(9, f32, y0), BUFFER(10, f32, y1),
             BUFFER(11, f32, y2), BUFFER(12, f32, y3), BUFFER(13, const f32, conv_weight),
             BUFFER(14, const i32, positions), BUFFER(15, const i32, state_before),
             BUFFER(16, const i32, state_after), BUFFER(17, f32, rings)) {
  SHARED_ARRAY(f32, work, ROW_WORK);
  SHARED_ARRAY(f32, pool, ROW_POOL);
  SHARED_ARRAY(f32, scales, STRIP_MAX_BLOCKS);
  SHARED_ARRAY(f32, inverse, 1);
  const StripGroup group = strip_group(p, k_group.x);
  const u32 type = p.type[group.part];
  const u32 n_out = p.n_out[group.part];
  DEVICE(const u8) weight = strip_weight(group.part, weight0, weight1, weight2, weight3);
  DEVICE(f32) y = strip_output(group.part, y0, y1, y2, y3);
  const bool is_float = type == STRIP_F32;
  const bool has_norm = p.has_norm != 0u;

  // What nobody has to wait for: weights and the norm's.
  const bool has_input = k_simdgroup < group.n_blocks;
  const u32 in_row = 256 * k_simdgroup + LANE_VALUES * k_lane;
  RowValues weights = {make4(0, 0, 0, 0), make4(0, 0, 0, 0)};
  if (has_norm && has_input) {
    weights = load_values(norm + in_row);
  }
  const u32 teams = max_u32(STRIP_SIMDGROUPS / group.n_units, 1u);
  const StripMatrix matrix = strip_matrix(type, group.n_blocks);
  StripItem item = first_item(group.begin, teams, k_simdgroup, group.n_units);
  StripTile tile;
  if (is_float) {
    load_row_chunks(p, weight, group.begin * STRIP_FLOAT_ROWS, n_out, 0, k_thread.x, tile);
  } else if (item.strip < group.end) {
    tile_load(type, (is_second(item, group) ? weight1 : weight) + item_tile(item, group, matrix),
              k_lane, tile);
  }
  wait_for_kernel_before();
  // All small things at once. Whoever comes last has no time to wait for some of them before.
  const u32 n_step_rows = counts[p.axis];
  RowValues input = {make4(0, 0, 0, 0), make4(0, 0, 0, 0)};
  if (has_input) {
    input = load_values(x + in_row);
  }
  const RowSlots slots = row_slots(p, positions, state_before, state_after);
  if (n_step_rows == 0u) {
    return;
  }
  f32 factor = 1.0f;
  if (has_norm) {
    factor = norm_of_row(p, x, input, k_simdgroup, k_lane, pool, inverse);
    input = normed(input, factor, weights);
  }

  if (is_float) {
    multiply_float_strip(p, group.part, weight, group.begin, x, norm, factor, input, row_gate,
                         residual, work, pool, k_simdgroup, k_lane, tile, y);
    return;
  }

  SHARED(u32) codes = as_words(pool);
  SHARED(i32) sums = as_integers(pool) + STRIP_MAX_BLOCKS * STRIP_BLOCK_WORDS;
  for (u32 block = k_simdgroup; block < group.n_blocks; block += STRIP_SIMDGROUPS) {
    RowValues values = input;
    if (block != k_simdgroup) {
      const u32 at = 256 * block + LANE_VALUES * k_lane;
      values = load_values(x + at);
      if (has_norm) {
        values = normed(values, factor, load_values(norm + at));
      }
    }
    quantize_row_block(values.low, values.high, k_lane, codes + block * STRIP_BLOCK_WORDS,
                       sums + block * ROW_SUMS, scales + block);
  }
  group_barrier();

  const bool is_pair = p.is_pair != 0u;
  const u32 place = k_thread.x / (is_pair ? 2 * STRIP_ROWS : STRIP_ROWS);
  const u32 kind = is_pair ? k_thread.x / STRIP_ROWS % 2 : 0u;
  for (u32 strip = group.begin; strip < group.end; strip += p.round_strips) {
    const u32 end = min_u32(strip + p.round_strips, group.end);
    const u32 output = (strip + place) * STRIP_ROWS + k_thread.x % STRIP_ROWS;
    const bool is_stored = place < end - strip && kind == 0u && output < n_out;
    const RowEnd ending =
        row_end(p, group.part, output, is_stored, row_gate, residual, conv_weight, slots, rings);
    if (type == STRIP_Q4_K) {
      q4_k_row(group, matrix, weight, weight1, teams, strip, end, k_simdgroup, k_lane, codes, sums,
               scales, work, item, tile);
    } else if (type == STRIP_Q5_K) {
      q5_k_row(group, matrix, weight, weight1, teams, strip, end, k_simdgroup, k_lane, codes, sums,
               scales, work, item, tile);
    } else {
      q6_k_row(group, matrix, weight, weight1, teams, strip, end, k_simdgroup, k_lane, codes, sums,
               scales, work, item, tile);
    }
    group_barrier();
    f32 result = 0.0f;
    if (place < end - strip) {
      result = sum_row_terms(work + ((place * group.n_units + kind * group.n_blocks) * ROW_TERMS +
                                     4 * (k_thread.x % STRIP_ROWS)),
                             group.n_blocks, type != STRIP_Q6_K);
    }
    if (is_pair) {
      const f32 other = shuffle_xor(result, STRIP_ROWS);
      result = activate_f32(p.activation, result) * other;
    }
    if (is_stored) {
      store_row(p, group.part, result, output, ending, slots, rings, y);
    }
    if (end < group.end) {
      group_barrier();  // what tiles said has been used
    }
  }
}

}  // namespace hearth::backend::gpu
