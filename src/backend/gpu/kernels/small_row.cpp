// For one row of the step and matrices of types with blocks of 32 weights. Of each matrix a
// threadgroup has few strips or many. Of few, a simdgroup has one tile at a time; what tiles say
// goes to shared memory, where a thread per result adds it up in order of k. Of many, a simdgroup
// has strips of its own and goes on with chains in registers, so that nobody waits for others.
// Parts of its next tile are asked for as those of a tile have been used. Strips of floats as in
// strip_row. 30 KiB of shared memory. Bound as strip_row.

#include "backend/gpu/kernels/row_parts.h"
#include "backend/gpu/kernels/small_strips.h"
#include "backend/gpu/kernels/strip_group.h"
#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {

/// Multiplies the simdgroup's tiles of strips [begin, end), as many strips as the simdgroups have
/// tiles of at once, and leaves the next tile in `tile`. Returns result `row` of strip `place`, of
/// a pair that of matrix `kind`, to threads that have one.
DEVICE_FN f32 small_row(u32 type, THREAD_REF(const StripGroup) group, StripMatrix matrix,
                        DEVICE(const u8) first, DEVICE(const u8) second, u32 teams, u32 begin,
                        u32 end, u32 simdgroup, u32 lane, SHARED(const u32) codes,
                        SHARED(const f32) scales, SHARED(f32) work, u32 place, u32 kind, u32 row,
                        THREAD_REF(StripItem) item, THREAD_REF(StripTile) tile) {
  f32 sum = 0.0f;
  for (u32 first_unit = 0; first_unit < group.n_units; first_unit += STRIP_SIMDGROUPS) {
    if (first_unit != 0u) {
      group_barrier();  // what tiles said has been used
    }
    const u32 end_unit = min_u32(first_unit + STRIP_SIMDGROUPS, group.n_units);
    if (item.strip < end && item.unit < end_unit) {
      const u32 block = item_block(item, group);
      item = next_item(item, teams, simdgroup, group.n_units);
      SmallProduct product;
      small_multiply(type, tile, item.strip < group.end,
                     (is_second(item, group) ? second : first) + item_tile(item, group, matrix),
                     codes + block * STRIP_BLOCK_WORDS, lane, product);
      store_small_terms(product, lane, work + simdgroup * SMALL_TERMS);
    }
    group_barrier();
    const u32 begin_sum = max_u32(kind * group.n_blocks, first_unit);
    const u32 end_sum = min_u32((kind + 1) * group.n_blocks, end_unit);
    if (place < end - begin && begin_sum < end_sum) {
      sum = add_small_terms(
          type, work + (place * group.n_units + begin_sum - first_unit) * SMALL_TERMS, row,
          scales + (begin_sum - kind * group.n_blocks) * SMALL_RUNS, end_sum - begin_sum, sum);
    }
  }
  return sum;
}

EARLY_KERNEL(strip_row_small, STRIP_THREADS, StripParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, row_gate),
             BUFFER(4, const f32, residual), BUFFER(5, const u8, weight0),
             BUFFER(6, const u8, weight1), BUFFER(7, const u8, weight2),
             BUFFER(8, const u8, weight3), BUFFER(9, f32, y0), BUFFER(10, f32, y1),
             BUFFER(11, f32, y2), BUFFER(12, f32, y3), BUFFER(13, const f32, conv_weight),
             BUFFER(14, const i32, positions), BUFFER(15, const i32, state_before),
             BUFFER(16, const i32, state_after), BUFFER(17, f32, rings)) {
  SHARED_ARRAY(f32, work, STRIP_WORK);
  SHARED_ARRAY(f32, pool, ROW_POOL);
  SHARED_ARRAY(f32, scales, (STRIP_MAX_BLOCKS * SMALL_RUNS));
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
  const bool is_own = !is_float && owns_strips(group);
  const u32 teams = max_u32(STRIP_SIMDGROUPS / group.n_units, 1u);
  const StripMatrix matrix = strip_matrix(type, group.n_blocks);
  StripItem item = first_item(group.begin, teams, k_simdgroup, group.n_units);
  if (is_own) {
    item.strip = group.begin + k_simdgroup;
    item.unit = 0;
  }
  StripTile tile;
  u32x4 own_scales = {0, 0, 0, 0};
  if (is_float) {
    load_row_chunks(p, weight, group.begin * STRIP_FLOAT_ROWS, n_out, 0, k_thread.x, tile);
  } else if (item.strip < group.end) {
    DEVICE(const u8)
    first = (is_second(item, group) ? weight1 : weight) + item_tile(item, group, matrix);
    small_tile_load(type, first, k_lane, tile);
    if (is_own) {
      own_scales = load_own_scales(type, first, k_lane);
    }
  }
  wait_for_kernel_before();
  // All small things at once, as in strip_row.
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
  for (u32 block = k_simdgroup; block < group.n_blocks; block += STRIP_SIMDGROUPS) {
    RowValues values = input;
    if (block != k_simdgroup) {
      const u32 at = 256 * block + LANE_VALUES * k_lane;
      values = load_values(x + at);
      if (has_norm) {
        values = normed(values, factor, load_values(norm + at));
      }
    }
    quantize_small_block(values.low, values.high, k_lane, codes + block * STRIP_BLOCK_WORDS,
                         scales + block * SMALL_RUNS, 1);
  }
  group_barrier();

  const bool is_pair = p.is_pair != 0u;
  if (is_own) {
    for (u32 strip = item.strip; strip < group.end; strip += STRIP_SIMDGROUPS) {
      const u32 output = strip * STRIP_ROWS + k_lane / 4 + 8 * (k_lane % 2);
      const bool is_stored = k_lane % 4 < 2u && output < n_out;
      RowEnd ending;
      f32 sum = 0.0f;
      f32 gate = 0.0f;
      KEEP_LOOP for (u32 unit = 0; unit < group.n_units; ++unit) {
        const u32 block = unit < group.n_blocks ? unit : unit - group.n_blocks;
        if (block == 0u) {  // of the gate, or of the other matrix
          gate = sum;
          sum = 0.0f;
        }
        const bool ends = unit + 1u == group.n_units;
        if (ends) {
          ending = row_end(p, group.part, output, is_stored, row_gate, residual, conv_weight, slots,
                           rings);
        }
        const StripItem next = {ends ? strip + STRIP_SIMDGROUPS : strip, ends ? 0u : unit + 1u};
        sum = own_multiply(
            type, tile, own_scales, next.strip < group.end,
            (is_second(next, group) ? weight1 : weight) + item_tile(next, group, matrix),
            codes + block * STRIP_BLOCK_WORDS, scales + block * SMALL_RUNS, k_lane, sum);
      }
      if (is_stored) {
        store_row(p, group.part, is_pair ? activate_f32(p.activation, gate) * sum : sum, output,
                  ending, slots, rings, y);
      }
    }
    return;
  }
  const u32 place = k_thread.x / (is_pair ? 2 * STRIP_ROWS : STRIP_ROWS);
  const u32 kind = is_pair ? k_thread.x / STRIP_ROWS % 2 : 0u;
  for (u32 strip = group.begin; strip < group.end; strip += teams) {
    const u32 end = min_u32(strip + teams, group.end);
    const u32 output = (strip + place) * STRIP_ROWS + k_thread.x % STRIP_ROWS;
    const bool is_stored = place < end - strip && kind == 0u && output < n_out;
    const RowEnd ending =
        row_end(p, group.part, output, is_stored, row_gate, residual, conv_weight, slots, rings);
    f32 result =
        small_row(type, group, matrix, weight, weight1, teams, strip, end, k_simdgroup, k_lane,
                  codes, scales, work, place, kind, k_thread.x % STRIP_ROWS, item, tile);
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
