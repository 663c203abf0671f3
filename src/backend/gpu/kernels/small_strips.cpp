// For several rows of the step and matrices of types with blocks of 32 weights
// (kernels/small_strips.h); strips of floats as in strip_projection. 30 KiB of shared memory. Bound
// as strip_projection.

#include "backend/gpu/kernels/small_strips.h"

#include "backend/gpu/kernels/strip_parts.h"

namespace hearth::backend::gpu {

/// Rows become `codes` [rows][small_row_words] and `scales` [blocks][SMALL_RUNS][rows].
DEVICE_FN void quantize_small_rows(PARAMS(StripParams) p, DEVICE(const f32) x,
                                   DEVICE(const f32) norm, SHARED(const f32) inverses, u32 n_blocks,
                                   u32 n_rows, u32 simdgroup, u32 lane, SHARED(u32) codes,
                                   SHARED(f32) scales) {
  for (u32 block = simdgroup; block < n_blocks * n_rows; block += STRIP_SIMDGROUPS) {
    const u32 row = block / n_blocks;
    const u32 in_row = block - row * n_blocks;
    const u32 first = 256 * in_row + LANE_VALUES * lane;
    DEVICE(const f32) from = x + (u64(row) * p.n + first);
    f32x4 low = load4(from);
    f32x4 high = load4(from + 4);
    if (p.has_norm != 0u) {
      const f32 inverse = inverses[row];
      low = low * inverse * load4(norm + first);
      high = high * inverse * load4(norm + first + 4);
    }
    quantize_small_block(low, high, lane,
                         codes + (row * small_row_words(n_blocks) + in_row * STRIP_BLOCK_WORDS),
                         scales + (in_row * SMALL_RUNS * n_rows + row), n_rows);
  }
}

#define SMALL_CODE_WORDS (STRIP_MAX_BLOCKS * STRIP_BLOCK_WORDS + STRIP_MAX_ROWS * SMALL_ROW_GAP)

EARLY_KERNEL(strip_projection_small, STRIP_THREADS, StripParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, row_gate),
             BUFFER(4, const f32, residual), BUFFER(5, const u8, weight0),
             BUFFER(6, const u8, weight1), BUFFER(7, const u8, weight2),
             BUFFER(8, const u8, weight3), BUFFER(9, f32, y0), BUFFER(10, f32, y1),
             BUFFER(11, f32, y2), BUFFER(12, f32, y3)) {
  // What is passed on and codes, or floats.
  SHARED_ARRAY(f32, work, (SMALL_LINK_WORK + SMALL_CODE_WORDS));
  SHARED_ARRAY(f32, scales, (STRIP_MAX_BLOCKS * SMALL_RUNS));
  SHARED_ARRAY(f32, inverses, STRIP_MAX_ROWS);
  SHARED(u32) codes = as_words(work) + SMALL_LINK_WORK;
  const StripGroup group = strip_group(p, k_group.x);
  const u32 type = p.type[group.part];
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
    f32x4 loaded[FLOAT_LOADS];
    load_float_rows(p, matrix, first_row, p.n_out[group.part], 0, k_thread.x, loaded);
    wait_for_kernel_before();
    multiply_float_rows(p, group.part, matrix, first_row, first_step_row,
                        min_u32(n_step_rows, first_step_row + p.group_rows), x, norm, row_gate,
                        residual, work, inverses, k_thread.x, loaded, y);
    return;
  }

  const bool is_own = owns_strips(group);
  const StripMatrix matrix = strip_matrix(type, group.n_blocks);
  const u32 teams = max_u32(STRIP_SIMDGROUPS / group.n_blocks, 1u);
  StripItem item = first_item(group.begin, teams, k_simdgroup, group.n_blocks);
  if (is_own) {
    item.strip = group.begin + k_simdgroup;
    item.unit = 0;
  }
  DEVICE(const u8) from = weight + item_tile(item, group, matrix);
  StripTile tile;
  StripTile second;
  if (item.strip < group.end) {
    small_tile_load(type, from, k_lane, tile);
  }
  wait_for_kernel_before();
  if (first_step_row >= n_step_rows) {
    return;
  }
  if (is_own && item.strip < group.end) {
    small_tile_load(type, from + matrix.tile_bytes, k_lane, second);
  }
  const u32 n_rows = min_u32(n_step_rows - first_step_row, p.group_rows);
  DEVICE(const f32) x_rows = x + u64(first_step_row) * p.n;
  if (p.has_norm != 0u) {
    norm_rows(p, x_rows, n_rows, work, inverses, k_thread.x);
  }
  quantize_small_rows(p, x_rows, norm, inverses, group.n_blocks, n_rows, k_simdgroup, k_lane, codes,
                      scales);
  group_barrier();
  if (is_own) {
    own_strips(p, type, group, weight, weight1, first_step_row, n_rows, k_simdgroup, k_lane, codes,
               scales, row_gate, residual, y, tile, second);
  } else {
    small_strips(p, type, group, weight, weight1, first_step_row, n_rows, k_simdgroup, k_lane,
                 codes, scales, work, row_gate, residual, y, tile);
  }
}

}  // namespace hearth::backend::gpu
