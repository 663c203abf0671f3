// A simdgroup owns 16 rows of the matrix and all columns of the threadgroup, whose results it keeps
// in registers. For each block of 256 values in order of k the threadgroup puts the codes of its
// columns into shared memory, then each simdgroup multiplies its tile of weights, unpacked once,
// with all of them: exact sums, and from these the next links of the chains of floats. 27 KiB of
// shared memory. Bound by the multiplications of sums with scales (Q4_K, Q5_K: four for each tile
// product) or by tile products (Q6_K: two for each 32 weights); with few columns by unpacking.

#include "backend/gpu/kernels/tile_product.h"

#include "backend/gpu/kernels/product_columns.h"
#include "backend/gpu/kernels/product_tile.h"

namespace hearth::backend::gpu {

/// Four groups of words of codes for each thread, and the thread's column for sums and scale.
struct StagedColumns {
  u32x4 codes[4];
  u32x2 sums;
  f32 scale;
};

/// Of block `block` of the columns' rows; those behind the last column repeat it.
DEVICE_FN void load_columns(DEVICE(const u32) codes, DEVICE(const f32) scales,
                            DEVICE(const u32) sums, SHARED(const u32) x_rows, u32 n_blocks,
                            u32 block, bool has_sums, u32 thread_index,
                            THREAD_REF(StagedColumns) staged) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    const u64 at = u64(x_rows[thread_index / 16 + 16 * i]) * n_blocks + block;
    staged.codes[i] = load4(codes + at * COLUMN_WORDS + 4 * (thread_index % 16));
  }
  const u64 at = u64(x_rows[thread_index / 4]) * n_blocks + block;
  if (has_sums) {
    staged.sums = load2(sums + at * 8 + 2 * (thread_index % 4));
  }
  staged.scale = scales[at];
}

/// Sums go as digits (tile_columns).
DEVICE_FN void store_columns(THREAD_REF(const StagedColumns) staged, bool has_sums,
                             u32 thread_index, SHARED(u32) codes, SHARED(u32) digits,
                             SHARED(f32) scales) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    const u32 column = thread_index / 16 + 16 * i;
    store4(codes + column * COLUMN_WORDS + 4 * ((thread_index % 16) ^ COLUMN_KEY(column)),
           staged.codes[i]);
  }
  if (has_sums) {
    digits[2 * thread_index] =
        pick_bytes(staged.sums.x & 0x003f003fu, staged.sums.y & 0x003f003fu, 0x6420u);
    digits[2 * thread_index + 1] = pick_bytes(staged.sums.x >> 6, staged.sums.y >> 6, 0x6420u);
  }
  if (thread_index % 4 == 0u) {
    scales[thread_index / 4] = staged.scale;
  }
}

#define TILE_KERNEL(name, format, block_bytes, has_offset)                                        \
  KERNEL(name, TILE_PRODUCT_THREADS, ProductParams, BUFFER(0, const u32, counts),                 \
         BUFFER(1, const u8, weight), BUFFER(2, const u32, codes), BUFFER(3, const f32, scales),  \
         BUFFER(4, const u32, sums), BUFFER(5, const u32, entries), BUFFER(6, const u32, tiles),  \
         BUFFER(7, const f32, bias), BUFFER(8, const f32, gate), BUFFER(9, const f32, residual),  \
         BUFFER(10, f32, y)) {                                                                    \
    SHARED_ARRAY(u32, column_codes, TILE_PRODUCT_COLUMNS* COLUMN_WORDS);                          \
    SHARED_ARRAY(u32, digits, 8 * TILE_PRODUCT_COLUMNS);                                          \
    SHARED_ARRAY(f32, column_scales, TILE_PRODUCT_COLUMNS);                                       \
    SHARED_ARRAY(u32, x_rows, TILE_PRODUCT_COLUMNS);                                              \
    SHARED_ARRAY(u32, step_rows, TILE_PRODUCT_COLUMNS);                                           \
    SHARED_ARRAY(u32, y_rows, TILE_PRODUCT_COLUMNS);                                              \
    SHARED_ARRAY(f32, outs, 16 * TILE_OUT_COLUMNS * TILE_PRODUCT_THREADS / 32);                   \
    const TilePlace place = tile_place(p, counts, tiles, k_group.y);                              \
    if (place.n_columns == 0u) {                                                                  \
      return;                                                                                     \
    }                                                                                             \
    if (k_thread.x < TILE_PRODUCT_COLUMNS) {                                                      \
      const u32 at = place.first + min_u32(k_thread.x, place.n_columns - 1u);                     \
      y_rows[k_thread.x] = p.n_used == 0u ? at : entries[at];                                     \
      step_rows[k_thread.x] = p.n_used == 0u ? at : entries[at] / p.n_used;                       \
      x_rows[k_thread.x] = p.has_x_per_slot != 0u ? y_rows[k_thread.x] : step_rows[k_thread.x];   \
    }                                                                                             \
    group_barrier();                                                                              \
    const u32 n_blocks = p.n_in / 256;                                                            \
    const u32 first_output = k_group.x * TILE_PRODUCT_OUTPUTS + 16 * k_simdgroup;                 \
    DEVICE(const u8)                                                                              \
    tiles_of_rows =                                                                               \
        weight + (place.first_weight + min_u32(first_output, p.n_out - 1u) / 16 * 16) *           \
                     (n_blocks * block_bytes);                                                    \
    const u32 n_groups = (place.n_columns + 7u) / 8;                                              \
    f32 results[4 * TILE_PRODUCT_GROUPS];                                                         \
    UNROLL for (u32 i = 0; i < 4 * TILE_PRODUCT_GROUPS; ++i) {                                    \
      results[i] = 0.0f;                                                                          \
    }                                                                                             \
    for (u32 block = 0; block < n_blocks; ++block) {                                              \
      StripTile raw;                                                                              \
      StagedColumns staged;                                                                       \
      format##_tile_load(tiles_of_rows + block * (16 * block_bytes), k_lane, raw);                \
      prefetch(tiles_of_rows + (min_u32(block + 1u, n_blocks - 1u) * (16 * block_bytes) +         \
                                min_u32(128 * k_lane, 16 * block_bytes - 1)));                    \
      load_columns(codes, scales, sums, x_rows, n_blocks, block, has_offset, k_thread.x, staged); \
      group_barrier(); /* the block before has been multiplied */                                 \
      store_columns(staged, has_offset, k_thread.x, column_codes, digits, column_scales);         \
      group_barrier();                                                                            \
      if (n_groups > TILE_PRODUCT_GROUPS / 2) {                                                   \
        format##_multiply_groups(raw, column_codes, digits, column_scales, TILE_PRODUCT_GROUPS,   \
                                 k_lane, results);                                                \
      } else if (n_groups > TILE_PRODUCT_GROUPS / 4) {                                            \
        format##_multiply_groups(raw, column_codes, digits, column_scales,                        \
                                 TILE_PRODUCT_GROUPS / 2, k_lane, results);                       \
      } else {                                                                                    \
        format##_multiply_groups(raw, column_codes, digits, column_scales,                        \
                                 TILE_PRODUCT_GROUPS / 4, k_lane, results);                       \
      }                                                                                           \
    }                                                                                             \
    SHARED(f32) out = outs + 16 * TILE_OUT_COLUMNS * k_simdgroup;                                 \
    for (u32 shown = 0; shown < place.n_columns; shown += TILE_OUT_COLUMNS) {                     \
      simdgroup_barrier(); /* what was there is stored */                                         \
      put_results(results, shown, k_lane, out);                                                   \
      simdgroup_barrier();                                                                        \
      store_results(p, out, y_rows + shown, step_rows + shown, place.n_columns - shown,           \
                    first_output, k_lane, bias, gate, residual, y);                               \
    }                                                                                             \
  }

TILE_KERNEL(tile_product_q4_k, q4_k, 144, true)
TILE_KERNEL(tile_product_q5_k, q5_k, 176, true)
TILE_KERNEL(tile_product_q6_k, q6_k, 210, false)

}  // namespace hearth::backend::gpu
