// A simdgroup owns 16 rows of the matrix and all columns of the threadgroup, whose results it keeps
// in registers. For each block of 256 values in order of k the threadgroup puts the codes of its
// columns into shared memory, and each simdgroup multiplies its tile of weights, unpacked once,
// with all of them: exact sums, and from these the next links of the chains of floats. Q4_K and
// Q5_K: by halves of blocks, of which one is on its way while the other is multiplied. 27 KiB of
// shared memory. Bound by the multiplications of sums with scales (Q4_K, Q5_K: four for each tile
// product) or by tile products (Q6_K: two for each 32 weights); with few columns by unpacking.

#include "backend/gpu/kernels/tile_product.h"

#include "backend/gpu/kernels/product_columns.h"
#include "backend/gpu/kernels/product_tile.h"

namespace hearth::backend::gpu {

// Columns come from memory into registers and from there into shared memory, those behind the last
// one repeat it.

/// A block: four groups of words of codes for each thread, and the scale of its column.
struct StagedBlock {
  u32x4 codes[4];
  f32 scale;
};

DEVICE_FN void load_block(DEVICE(const u32) codes, DEVICE(const f32) scales,
                          SHARED(const u32) x_rows, u32 n_blocks, u32 block, u32 thread_index,
                          THREAD_REF(StagedBlock) staged) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    const u64 at = u64(x_rows[thread_index / 16 + 16 * i]) * n_blocks + block;
    staged.codes[i] = load4(codes + at * COLUMN_WORDS + 4 * (thread_index % 16));
  }
  staged.scale = scales[u64(x_rows[thread_index / 4]) * n_blocks + block];
}

DEVICE_FN void store_block(THREAD_REF(const StagedBlock) staged, u32 thread_index,
                           SHARED(u32) codes, SHARED(f32) scales) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    const u32 column = thread_index / 16 + 16 * i;
    store4(codes + column * COLUMN_WORDS + 4 * ((thread_index % 16) ^ COLUMN_KEY(column)),
           staged.codes[i]);
  }
  if (thread_index % 4 == 0u) {
    scales[thread_index / 4] = staged.scale;
  }
}

/// Half a block: two groups of words for each thread.
struct StagedHalf {
  u32x4 codes[2];
};

DEVICE_FN void load_half(DEVICE(const u32) codes, SHARED(const u32) x_rows, u32 n_blocks, u32 index,
                         u32 thread_index, THREAD_REF(StagedHalf) staged) {
  UNROLL for (u32 i = 0; i < 2; ++i) {
    const u64 row = x_rows[thread_index / 8 + 32 * i];
    staged.codes[i] =
        load4(codes + (row * (2 * n_blocks) + index) * COLUMN_HALF_WORDS + 4 * (thread_index % 8));
  }
}

DEVICE_FN void store_half(THREAD_REF(const StagedHalf) staged, u32 thread_index,
                          SHARED(u32) codes) {
  UNROLL for (u32 i = 0; i < 2; ++i) {
    const u32 column = thread_index / 8 + 32 * i;
    store4(codes + column * COLUMN_HALF_WORDS + 4 * ((thread_index % 8) ^ COLUMN_KEY(column)),
           staged.codes[i]);
  }
}

/// Of a block four sums of the thread's column, and its scale.
struct StagedSums {
  u32x2 sums;
  f32 scale;
};

DEVICE_FN void load_sums(DEVICE(const f32) scales, DEVICE(const u32) sums, SHARED(const u32) x_rows,
                         u32 n_blocks, u32 block, u32 thread_index, THREAD_REF(StagedSums) staged) {
  const u64 at = u64(x_rows[thread_index / 4]) * n_blocks + block;
  staged.sums = load2(sums + at * 8 + 2 * (thread_index % 4));
  staged.scale = scales[at];
}

/// digits [columns][4][2]: of each four sums the low six bits, and the rest.
DEVICE_FN void store_sums(THREAD_REF(const StagedSums) staged, u32 thread_index, SHARED(u32) digits,
                          SHARED(f32) scales) {
  digits[2 * thread_index] =
      pick_bytes(staged.sums.x & 0x003f003fu, staged.sums.y & 0x003f003fu, 0x6420u);
  digits[2 * thread_index + 1] = pick_bytes(staged.sums.x >> 6, staged.sums.y >> 6, 0x6420u);
  if (thread_index % 4 == 0u) {
    scales[thread_index / 4] = staged.scale;
  }
}

/// Bits beside the pieces, of the formats that multiply half a block at a time.
DEVICE_FN void q4_k_load_bits(DEVICE(const u8), u32, THREAD_REF(StripTile)) {}
DEVICE_FN void q5_k_load_bits(DEVICE(const u8) tile, u32 lane, THREAD_REF(StripTile) to) {
  load_bits(tile, 0, lane, to);
}

// What a simdgroup does for its tiles of all blocks. Few columns are multiplied as if they were a
// quarter or half of the most.

#define DIGIT_PASS(n, format, block_bytes)                                          \
  for (u32 block = 0; block < n_blocks; ++block) {                                  \
    StripTile raw;                                                                  \
    StagedBlock staged;                                                             \
    format##_tile_load(tiles_of_rows + block * (16 * block_bytes), k_lane, raw);    \
    load_block(codes, scales, x_rows, n_blocks, block, k_thread.x, staged);         \
    group_barrier(); /* the block before has been multiplied */                     \
    store_block(staged, k_thread.x, column_codes, column_scales);                   \
    group_barrier();                                                                \
    format##_multiply_groups(raw, column_codes, column_scales, n, k_lane, results); \
  }
#define BY_GROUPS(what, format, block_bytes)           \
  if (n_groups > TILE_PRODUCT_GROUPS / 2) {            \
    what(TILE_PRODUCT_GROUPS, format, block_bytes)     \
  } else if (n_groups > TILE_PRODUCT_GROUPS / 4) {     \
    what(TILE_PRODUCT_GROUPS / 2, format, block_bytes) \
  } else {                                             \
    what(TILE_PRODUCT_GROUPS / 4, format, block_bytes) \
  }
#define DIGIT_LOOP(format, block_bytes)               \
  static_cast<void>(sums); /* codes are not offset */ \
  static_cast<void>(digits);                          \
  BY_GROUPS(DIGIT_PASS, format, block_bytes)

#define SCALED_PASS(n, format, block_bytes)                                                       \
  for (u32 block = 0; block < n_blocks; ++block) {                                                \
    const u32 next = min_u32(block + 1u, n_blocks - 1u);                                          \
    DEVICE(const u8) next_tile = tiles_of_rows + next * (16 * block_bytes);                       \
    const ScaledRows rows = scaled_rows(raw.heads[0], raw.heads[1], k_lane);                      \
    i32 block_sums[4 * TILE_PRODUCT_GROUPS];                                                      \
    load_half(codes, x_rows, n_blocks, 2 * block + 1, k_thread.x, staged_half);                   \
    load_sums(scales, sums, x_rows, n_blocks, block, k_thread.x, staged);                         \
    format##_multiply_half(raw, rows, 0, column_codes, n, k_lane, block_sums);                    \
    load_piece(next_tile, 0, k_lane, raw);                                                        \
    load_piece(next_tile, 1, k_lane, raw);                                                        \
    store_half(staged_half, k_thread.x, column_codes + TILE_PRODUCT_COLUMNS * COLUMN_HALF_WORDS); \
    store_sums(staged, k_thread.x, digits, column_scales);                                        \
    group_barrier(); /* the second half is there */                                               \
    load_half(codes, x_rows, n_blocks, 2 * next, k_thread.x, staged_half);                        \
    format##_multiply_half(raw, rows, 1, column_codes + TILE_PRODUCT_COLUMNS * COLUMN_HALF_WORDS, \
                           n, k_lane, block_sums);                                                \
    store_half(staged_half, k_thread.x, column_codes);                                            \
    load_head(next_tile, 0, k_lane, raw);                                                         \
    load_head(next_tile, 1, k_lane, raw);                                                         \
    load_piece(next_tile, 2, k_lane, raw);                                                        \
    load_piece(next_tile, 3, k_lane, raw);                                                        \
    format##_load_bits(next_tile, k_lane, raw);                                                   \
    add_scaled_links(rows, digits, column_scales, n, k_lane, block_sums, results);                \
    group_barrier(); /* the first half of the next block is there */                              \
  }
#define SCALED_LOOP(format, block_bytes)                          \
  StripTile raw;                                                  \
  StagedHalf staged_half;                                         \
  StagedSums staged;                                              \
  format##_tile_load(tiles_of_rows, k_lane, raw);                 \
  load_half(codes, x_rows, n_blocks, 0, k_thread.x, staged_half); \
  store_half(staged_half, k_thread.x, column_codes);              \
  group_barrier();                                                \
  BY_GROUPS(SCALED_PASS, format, block_bytes)

#define TILE_KERNEL(name, format, block_bytes, loop)                                             \
  KERNEL(name, TILE_PRODUCT_THREADS, ProductParams, BUFFER(0, const u32, counts),                \
         BUFFER(1, const u8, weight), BUFFER(2, const u32, codes), BUFFER(3, const f32, scales), \
         BUFFER(4, const u32, sums), BUFFER(5, const u32, entries), BUFFER(6, const u32, tiles), \
         BUFFER(7, const f32, bias), BUFFER(8, const f32, gate), BUFFER(9, const f32, residual), \
         BUFFER(10, f32, y)) {                                                                   \
    SHARED_ARRAY(u32, column_codes, TILE_PRODUCT_COLUMNS* COLUMN_WORDS);                         \
    SHARED_ARRAY(u32, digits, 8 * TILE_PRODUCT_COLUMNS);                                         \
    SHARED_ARRAY(f32, column_scales, TILE_PRODUCT_COLUMNS);                                      \
    SHARED_ARRAY(u32, x_rows, TILE_PRODUCT_COLUMNS);                                             \
    SHARED_ARRAY(u32, step_rows, TILE_PRODUCT_COLUMNS);                                          \
    SHARED_ARRAY(u32, y_rows, TILE_PRODUCT_COLUMNS);                                             \
    SHARED_ARRAY(f32, outs, 16 * TILE_OUT_COLUMNS * TILE_PRODUCT_THREADS / 32);                  \
    const TilePlace place = tile_place(p, counts, tiles, k_group.y);                             \
    if (place.n_columns == 0u) {                                                                 \
      return;                                                                                    \
    }                                                                                            \
    place_columns(p, entries, place, k_thread.x, x_rows, step_rows, y_rows);                     \
    group_barrier();                                                                             \
    const u32 n_blocks = p.n_in / 256;                                                           \
    const u32 first_output = k_group.x * TILE_PRODUCT_OUTPUTS + 16 * k_simdgroup;                \
    DEVICE(const u8)                                                                             \
    tiles_of_rows =                                                                              \
        weight + (place.first_weight + min_u32(first_output, p.n_out - 1u) / 16 * 16) *          \
                     (n_blocks * block_bytes);                                                   \
    const u32 n_groups = (place.n_columns + 7u) / 8;                                             \
    f32 results[4 * TILE_PRODUCT_GROUPS];                                                        \
    UNROLL for (u32 i = 0; i < 4 * TILE_PRODUCT_GROUPS; ++i) {                                   \
      results[i] = 0.0f;                                                                         \
    }                                                                                            \
    loop(format, block_bytes) store_columns_of_tiles(                                            \
        p, results, place.n_columns, outs + 16 * TILE_OUT_COLUMNS * k_simdgroup, y_rows,         \
        step_rows, first_output, k_lane, bias, gate, residual, y);                               \
  }

TILE_KERNEL(tile_product_q4_k, q4_k, 144, SCALED_LOOP)
TILE_KERNEL(tile_product_q5_k, q5_k, 176, SCALED_LOOP)
TILE_KERNEL(tile_product_q6_k, q6_k, 210, DIGIT_LOOP)

}  // namespace hearth::backend::gpu
