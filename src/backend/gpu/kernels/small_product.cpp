// kernels/tile_product.cpp for types with blocks of 32 weights: a link of the chains of floats for
// each product of tiles. 28 KiB of shared memory. Bound by these links: of each sum a conversion, a
// product of scales, a fused multiplication.

#include "backend/gpu/kernels/product_columns.h"
#include "backend/gpu/kernels/small_tile.h"
#include "backend/gpu/kernels/tile_product.h"

namespace hearth::backend::gpu {

// Codes of a column in shared memory: words q and q + 4 of each run lie together, and run i of
// column c at i ^ (c % 4), so that lanes of neighbouring columns meet different banks.
#define SMALL_COLUMN_WORDS (8 * SMALL_RUNS)

/// From the scales of a run of all columns to those of the next: runs meet different banks.
#define COLUMN_SCALES (TILE_PRODUCT_COLUMNS + 4)

#define STAGED_RUNS (TILE_PRODUCT_COLUMNS * SMALL_RUNS / TILE_PRODUCT_THREADS)
#define STAGED_COLUMNS (TILE_PRODUCT_THREADS / SMALL_RUNS)  // of which a thread has a run at once

/// A thread's runs of codes, and their scales.
struct StagedRuns {
  u32x4 codes[2 * STAGED_RUNS];
  f32 scales[STAGED_RUNS];
};

/// Of block `block` of the columns' rows; those behind the last column repeat it.
DEVICE_FN void load_runs(DEVICE(const u32) codes, DEVICE(const f32) scales,
                         SHARED(const u32) x_rows, u32 n_blocks, u32 block, u32 thread_index,
                         THREAD_REF(StagedRuns) staged) {
  UNROLL for (u32 i = 0; i < STAGED_RUNS; ++i) {
    const u32 column = thread_index / SMALL_RUNS + STAGED_COLUMNS * i;
    const u64 run =
        (u64(x_rows[column]) * n_blocks + block) * SMALL_RUNS + thread_index % SMALL_RUNS;
    staged.codes[2 * i] = load4(codes + 8 * run);
    staged.codes[2 * i + 1] = load4(codes + 8 * run + 4);
    staged.scales[i] = scales[run];
  }
}

DEVICE_FN void store_runs(THREAD_REF(const StagedRuns) staged, u32 thread_index, SHARED(u32) codes,
                          SHARED(f32) scales) {
  const u32 run = thread_index % SMALL_RUNS;
  UNROLL for (u32 i = 0; i < STAGED_RUNS; ++i) {
    const u32 column = thread_index / SMALL_RUNS + STAGED_COLUMNS * i;
    const u32x4 low = staged.codes[2 * i];
    const u32x4 high = staged.codes[2 * i + 1];
    const u32x4 first = {low.x, high.x, low.y, high.y};
    const u32x4 second = {low.z, high.z, low.w, high.w};
    SHARED(u32) to = codes + (column * SMALL_COLUMN_WORDS + 8 * (run ^ (column % 4)));
    store4(to, first);
    store4(to + 4, second);
    scales[run * COLUMN_SCALES + column] = staged.scales[i];
  }
}

/// A tile, and the scale of each run of rows g and g + 8.
struct SmallTile {
  u32x4 runs[SMALL_RUNS];
  f32 scales[2][SMALL_RUNS];
};

/// format_small_unpack: by all lanes.
#define SMALL_UNPACK(format)                                                                \
  DEVICE_FN void format##_small_unpack(u32 type, THREAD_REF(const StripTile) raw, u32 lane, \
                                       THREAD_REF(SmallTile) tile) {                        \
    const u32x4 levels = small_levels(type);                                                \
    UNROLL for (u32 i = 0; i < SMALL_RUNS; ++i) {                                           \
      tile.runs[i] = format##_run(raw, i, levels);                                          \
    }                                                                                       \
    UNROLL for (u32 i = 0; i < SMALL_RUNS / 2; ++i) {                                       \
      UNROLL for (u32 r = 0; r < 2; ++r) {                                                  \
        const u32 both = scale_halves(type, shuffle(raw.factor[r], lane / 4 * 4 + i));      \
        tile.scales[r][2 * i] = first_scale(type, both);                                    \
        tile.scales[r][2 * i + 1] = second_scale(type, both);                               \
      }                                                                                     \
    }                                                                                       \
  }

SMALL_UNPACK(q8_0)
SMALL_UNPACK(four_bits)

/// The next links of the chains of a tile and eight columns from `first` on.
DEVICE_FN void add_runs(THREAD_REF(const SmallTile) tile, SHARED(const u32) codes,
                        SHARED(const f32) scales, u32 first, u32 lane, THREAD(f32) results) {
  const u32 column = first + lane / 4;
  SHARED(const u32) column_codes = codes + (column * SMALL_COLUMN_WORDS + 2 * (lane % 4));
  SHARED(const f32) column_scales = scales + (first + 2 * (lane % 4));
  UNROLL for (u32 i = 0; i < SMALL_RUNS; ++i) {
    const u32x2 x = load2(column_codes + 8 * (i ^ (column % 4)));
    i32 sums[4] = {0, 0, 0, 0};
    add_tile_product_i8(sums, tile.runs[i], x.x, x.y, lane);
    UNROLL for (u32 j = 0; j < 4; ++j) {
      const f32 factor = tile.scales[j / 2][i] * column_scales[i * COLUMN_SCALES + j % 2];
      results[j] = fma_f32(factor, f32(sums[j]), results[j]);
    }
  }
}

#define SMALL_KERNEL(name, format, type)                                                         \
  KERNEL(name, TILE_PRODUCT_THREADS, ProductParams, BUFFER(0, const u32, counts),                \
         BUFFER(1, const u8, weight), BUFFER(2, const u32, codes), BUFFER(3, const f32, scales), \
         BUFFER(4, const u32, sums), BUFFER(5, const u32, entries), BUFFER(6, const u32, tiles), \
         BUFFER(7, const f32, bias), BUFFER(8, const f32, gate), BUFFER(9, const f32, residual), \
         BUFFER(10, f32, y)) {                                                                   \
    SHARED_ARRAY(u32, column_codes, TILE_PRODUCT_COLUMNS* SMALL_COLUMN_WORDS);                   \
    SHARED_ARRAY(f32, column_scales, SMALL_RUNS* COLUMN_SCALES);                                 \
    SHARED_ARRAY(u32, x_rows, TILE_PRODUCT_COLUMNS);                                             \
    SHARED_ARRAY(u32, step_rows, TILE_PRODUCT_COLUMNS);                                          \
    SHARED_ARRAY(u32, y_rows, TILE_PRODUCT_COLUMNS);                                             \
    SHARED_ARRAY(f32, outs, 16 * TILE_OUT_COLUMNS * TILE_PRODUCT_THREADS / 32);                  \
    (void)sums; /* of types with an offset term */                                               \
    const TilePlace place = tile_place(p, counts, tiles, k_group.y);                             \
    if (place.n_columns == 0u) {                                                                 \
      return;                                                                                    \
    }                                                                                            \
    place_columns(p, entries, place, k_thread.x, x_rows, step_rows, y_rows);                     \
    group_barrier();                                                                             \
    const u32 n_blocks = p.n_in / 256;                                                           \
    const u32 first_output = k_group.x * TILE_PRODUCT_OUTPUTS + 16 * k_simdgroup;                \
    const u64 strip = (place.first_weight + min_u32(first_output, p.n_out - 1u)) / TILE_ROWS;    \
    DEVICE(const u8) tiles_of_rows = weight + strip * n_blocks * strip_tile_bytes(type);         \
    const u32 n_groups = (place.n_columns + 7u) / 8;                                             \
    f32 results[4 * TILE_PRODUCT_GROUPS];                                                        \
    UNROLL for (u32 i = 0; i < 4 * TILE_PRODUCT_GROUPS; ++i) {                                   \
      results[i] = 0.0f;                                                                         \
    }                                                                                            \
    for (u32 block = 0; block < n_blocks; ++block) {                                             \
      StripTile raw;                                                                             \
      StagedRuns staged;                                                                         \
      small_tile_load(type, tiles_of_rows + block * strip_tile_bytes(type), k_lane, raw);        \
      load_runs(codes, scales, x_rows, n_blocks, block, k_thread.x, staged);                     \
      SmallTile tile;                                                                            \
      format##_small_unpack(type, raw, k_lane, tile);                                            \
      group_barrier(); /* the block before has been multiplied */                                \
      store_runs(staged, k_thread.x, column_codes, column_scales);                               \
      group_barrier();                                                                           \
      UNROLL for (u32 i = 0; i < TILE_PRODUCT_GROUPS; ++i) {                                     \
        if (i < n_groups) {                                                                      \
          add_runs(tile, column_codes, column_scales, 8 * i, k_lane, results + 4 * i);           \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
    store_columns_of_tiles(p, results, place.n_columns,                                          \
                           outs + 16 * TILE_OUT_COLUMNS * k_simdgroup, y_rows, step_rows,        \
                           first_output, k_lane, bias, gate, residual, y);                       \
  }

SMALL_KERNEL(tile_product_q8_0, q8_0, STRIP_Q8_0)
SMALL_KERNEL(tile_product_q4_0, four_bits, STRIP_Q4_0)
SMALL_KERNEL(tile_product_iq4_nl, four_bits, STRIP_IQ4_NL)
SMALL_KERNEL(tile_product_mxfp4, four_bits, STRIP_MXFP4)

}  // namespace hearth::backend::gpu
