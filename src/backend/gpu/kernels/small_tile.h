#pragma once
/// Tiles of types with a scale for every 32 weights (kernels/weight_tiles.h), as a simdgroup holds
/// them in registers. A run of 32 codes is one product of tiles, of which lane 4 g + q has words q
/// and q + 4 of rows g and g + 8. Types of four bits say which of sixteen bytes a code is.

#include "backend/gpu/kernels/small_blocks.h"
#include "backend/gpu/kernels/strip_sums.h"

namespace hearth::backend::gpu {

// A StripTile has the pieces of Q8_0 in `pieces`, `heads` and `bits`, those of four bits in
// `pieces`; in factor[r] both scales of runs 2 q and 2 q + 1 of row g + 8 r.

#define SMALL_RUNS 8  // of a tile

// Blocks of codes in shared memory: words q and q + 4 of each run of 32 lie together. After the
// blocks of a row a gap, so that rows meet different banks.
#define SMALL_ROW_GAP 8

/// Piece i of eight.
DEVICE_FN u32x4 small_piece(THREAD_REF(const StripTile) tile, u32 i) {
  return i < 4u ? tile.pieces[i % 4] : (i < 6u ? tile.heads[i % 2] : tile.bits[i % 2]);
}

/// `head`: bytes in front of the pieces.
DEVICE_FN void load_small_piece(DEVICE(const u8) tile, u32 head, u32 i, u32 lane,
                                THREAD_REF(StripTile) to) {
  const u32x4 piece = load4_once(words(tile) + ((head + i * TILE_PIECE_BYTES) / 4 + 4 * lane));
  if (i < 4u) {
    to.pieces[i % 4] = piece;
  } else if (i < 6u) {
    to.heads[i % 2] = piece;
  } else {
    to.bits[i % 2] = piece;
  }
}

DEVICE_FN u32 small_head(u32 type) {
  return type == STRIP_MXFP4 ? ODD_HEAD_BYTES : TILE_HEAD_BYTES;
}

DEVICE_FN void load_small_scales(u32 type, DEVICE(const u8) tile, u32 lane,
                                 THREAD_REF(StripTile) to) {
  UNROLL for (u32 r = 0; r < 2; ++r) {
    to.factor[r] =
        type == STRIP_MXFP4 ? u32(halfwords(tile)[32 * r + lane]) : words(tile)[32 * r + lane];
  }
}

DEVICE_FN u32 small_pieces(u32 type) {
  return type == STRIP_Q8_0 ? 8u : 4u;
}

DEVICE_FN void small_tile_load(u32 type, DEVICE(const u8) tile, u32 lane,
                               THREAD_REF(StripTile) to) {
  UNROLL for (u32 i = 0; i < 8; ++i) {
    if (i < small_pieces(type)) {
      load_small_piece(tile, small_head(type), i, lane, to);
    }
  }
  load_small_scales(type, tile, lane, to);
}

/// The bytes that codes of four bits stand for.
DEVICE_FN u32x4 small_levels(u32 type) {
  const u32x4 numbers = {0xfbfaf9f8u, 0xfffefdfcu, 0x03020100u, 0x07060504u};  // -8 ... 7
  u32x4 levels = iq4_levels();
  if (type == STRIP_Q4_0) {
    levels = numbers;
  } else if (type == STRIP_MXFP4) {
    levels = doubled_e2m1();
  }
  return levels;
}

/// format_run: run i of signed bytes, in the order of an integer tile's words; `levels` are those
/// of small_levels().
DEVICE_FN u32x4 q8_0_run(THREAD_REF(const StripTile) tile, u32 i, u32x4) {
  return small_piece(tile, i);
}
DEVICE_FN u32x4 four_bits_run(THREAD_REF(const StripTile) tile, u32 i, u32x4 levels) {
  const u32x4 both = tile.pieces[i / 2];
  u32 low[2];
  u32 high[2];
  look_up_nibbles(i % 2 == 0u ? both.x : both.z, levels, low[0], high[0]);
  look_up_nibbles(i % 2 == 0u ? both.y : both.w, levels, low[1], high[1]);
  const u32x4 run = {low[0], low[1], high[0], high[1]};
  return run;
}

/// Whether a run is the last of its piece, and that piece.
#define q8_0_ends_piece(i) true
#define q8_0_piece_of(i) (i)
#define four_bits_ends_piece(i) ((i) % 2 == 1u)
#define four_bits_piece_of(i) ((i) / 2)

/// Scales as halves: of MXFP4, whose bytes are exponents e of 2^(e - 128), upper halves of floats,
/// of which the first two are subnormal.
DEVICE_FN u32 scale_halves(u32 type, u32 both) {
  if (type != STRIP_MXFP4) {
    return both;
  }
  const u32 first = both & 255u;
  const u32 second = (both >> 8) & 255u;
  return (first < 2u ? 0x20u << first : (first - 1u) << 7) |
         (second < 2u ? 0x20u << second : (second - 1u) << 7) << 16;
}

/// The first of two scales that are halves, and the second.
DEVICE_FN f32 first_scale(u32 type, u32 both) {
  return type == STRIP_MXFP4 ? f32_of_bits(both << 16) : to_f32(f16_of_bits(both & 0xffffu));
}
DEVICE_FN f32 second_scale(u32 type, u32 both) {
  return type == STRIP_MXFP4 ? f32_of_bits(both & 0xffff0000u) : to_f32(f16_of_bits(both >> 16));
}

/// 256 values, eight neighbours in each lane, become a block of codes and eight scales.
DEVICE_FN void quantize_small_block(f32x4 low, f32x4 high, u32 lane, SHARED(u32) codes,
                                    SHARED(f32) scales, u32 scale_stride) {
  const f32 values[LANE_VALUES] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  u32 magnitude = 0;
  UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
    magnitude = max_u32(magnitude, bits_of_f32(values[i]) & 0x7fffffffu);
  }
  magnitude = max_u32(magnitude, shuffle_xor(magnitude, 1));
  magnitude = max_u32(magnitude, shuffle_xor(magnitude, 2));
  const BlockScale factors = block_scale(magnitude);
  u32 packed[2] = {0, 0};
  if (factors.inverse != 0.0f) {  // 0 * NaN is no code
    u32 bits[LANE_VALUES];
    UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
      bits[i] = code_bits(values[i], factors.inverse);
    }
    packed[0] = pack_low_bytes(bits[0], bits[1], bits[2], bits[3]);
    packed[1] = pack_low_bytes(bits[4], bits[5], bits[6], bits[7]);
  }
  // Words 2 (lane % 4) and the next of run lane / 4.
  const u32 at = 8 * (lane / 4) + 4 * (lane % 2) + lane % 4 / 2;
  codes[at] = packed[0];
  codes[at + 2] = packed[1];
  if (lane % 4 == 0u) {
    scales[lane / 4 * scale_stride] = factors.scale;
  }
}

/// Words q and q + 4 of run i of a block of codes.
DEVICE_FN u32x2 small_run_words(SHARED(const u32) codes, u32 i, u32 lane) {
  return load2(codes + (8 * i + 2 * (lane % 4)));
}

// A single row: column c of the sums gets run c alone, so lane 4 g + q of rows g and g + 8 has the
// sums of runs 2 q and 2 q + 1.

/// What a tile says of a row: in the order of sums of a tile.
struct SmallProduct {
  i32 sums[4];
  u32 scales[2];  // of rows g and g + 8, two halves
};

/// format_small_multiply: with has_next, each part of the tile makes room for that of the tile at
/// `next` as it has been used.
#define SMALL_ROW_MULTIPLY(format)                                                                 \
  DEVICE_FN void format##_small_multiply(u32 type, THREAD_REF(StripTile) tile, bool has_next,      \
                                         DEVICE(const u8) next, SHARED(const u32) codes, u32 lane, \
                                         THREAD_REF(SmallProduct) product) {                       \
    const u32x4 levels = small_levels(type);                                                       \
    const u32x2 mine = small_run_words(codes, lane / 4, lane);                                     \
    product.scales[0] = scale_halves(type, tile.factor[0]);                                        \
    product.scales[1] = scale_halves(type, tile.factor[1]);                                        \
    if (has_next) {                                                                                \
      load_small_scales(type, next, lane, tile);                                                   \
    }                                                                                              \
    UNROLL for (u32 i = 0; i < SMALL_RUNS; ++i) {                                                  \
      const u32x2 x = words_if(lane / 4 == i, mine);                                               \
      if (i == 0u) {                                                                               \
        tile_product_i8(product.sums, format##_run(tile, i, levels), x.x, x.y, lane);              \
      } else {                                                                                     \
        add_tile_product_i8(product.sums, format##_run(tile, i, levels), x.x, x.y, lane);          \
      }                                                                                            \
      if (has_next && format##_ends_piece(i)) {                                                    \
        load_small_piece(next, small_head(type), format##_piece_of(i), lane, tile);                \
      }                                                                                            \
    }                                                                                              \
  }

SMALL_ROW_MULTIPLY(q8_0)
SMALL_ROW_MULTIPLY(four_bits)

DEVICE_FN void small_multiply(u32 type, THREAD_REF(StripTile) tile, bool has_next,
                              DEVICE(const u8) next, SHARED(const u32) codes, u32 lane,
                              THREAD_REF(SmallProduct) product) {
  if (type == STRIP_Q8_0) {
    q8_0_small_multiply(type, tile, has_next, next, codes, lane, product);
  } else {
    four_bits_small_multiply(type, tile, has_next, next, codes, lane, product);
  }
}

/// Puts what a tile says into `terms`: sums [16 rows][8 runs], then scales likewise, of half the
/// size.
DEVICE_FN void store_small_terms(THREAD_REF(const SmallProduct) product, u32 lane,
                                 SHARED(f32) terms) {
  SHARED(f32) sums = terms + 2 * lane;
  SHARED(u32) scales = as_words(terms) + 16 * SMALL_RUNS + lane;
  UNROLL for (u32 r = 0; r < 2; ++r) {
    store2(sums + 8 * SMALL_RUNS * r, f32(product.sums[2 * r]), f32(product.sums[2 * r + 1]));
    scales[32 * r] = product.scales[r];
  }
}

/// What a tile says of one result, and the scales of the codes.
struct SmallTerms {
  f32x4 sums[2];
  f32x4 x_scales[2];
  u32x4 scales;
};

DEVICE_FN SmallTerms load_small_terms(SHARED(f32) terms, u32 row, SHARED(const f32) x_scales) {
  SmallTerms result;
  UNROLL for (u32 i = 0; i < 2; ++i) {
    result.sums[i] = load4(terms + (SMALL_RUNS * row + 4 * i));
    result.x_scales[i] = load4(x_scales + 4 * i);
  }
  SHARED(const u32) scales = as_words(terms) + (16 * SMALL_RUNS + 4 * row);
  result.scales = load4(scales);
  return result;
}

/// Two links of a chain.
DEVICE_FN f32 add_two_runs(u32 type, u32 scales, f32 x_scale0, f32 x_scale1, f32 sum0, f32 sum1,
                           f32 sum) {
  const f32 first = first_scale(type, scales) * x_scale0;
  const f32 second = second_scale(type, scales) * x_scale1;
  return fma_f32(second, sum1, fma_f32(first, sum0, sum));
}

/// Goes on with one result: the terms of n tiles from `terms` on, in order, with the scales of the
/// codes from `x_scales` on.
DEVICE_FN f32 add_small_terms(u32 type, SHARED(f32) terms, u32 row, SHARED(const f32) x_scales,
                              u32 n, f32 sum) {
  SmallTerms now = load_small_terms(terms, row, x_scales);
  for (u32 i = 1; i <= n; ++i) {
    const u32 ahead = i < n ? i : 0u;
    const SmallTerms next =
        load_small_terms(terms + ahead * SMALL_TERMS, row, x_scales + ahead * SMALL_RUNS);
    sum = add_two_runs(type, now.scales.x, now.x_scales[0].x, now.x_scales[0].y, now.sums[0].x,
                       now.sums[0].y, sum);
    sum = add_two_runs(type, now.scales.y, now.x_scales[0].z, now.x_scales[0].w, now.sums[0].z,
                       now.sums[0].w, sum);
    sum = add_two_runs(type, now.scales.z, now.x_scales[1].x, now.x_scales[1].y, now.sums[1].x,
                       now.sums[1].y, sum);
    sum = add_two_runs(type, now.scales.w, now.x_scales[1].z, now.x_scales[1].w, now.sums[1].z,
                       now.sums[1].w, sum);
    now = next;
  }
  return sum;
}

// A row whose strips are many: a simdgroup has strips of its own and goes on with chains in
// registers. Every column of the sums gets every run, so lane 4 g + q has all sums of rows g and g
// + 8, of which it goes on with row g + 8 (q % 2).

/// The scales of the lane's row, as the tile has them.
DEVICE_FN u32x4 load_own_scales(u32 type, DEVICE(const u8) tile, u32 lane) {
  const u32 row = lane / 4 + 8 * (lane % 2);
  u32x4 scales = {0, 0, 0, 0};
  if (type == STRIP_MXFP4) {
    const u32x2 exponents = load2(words(tile) + 2 * row);
    scales.x = exponents.x;
    scales.y = exponents.y;
  } else {
    scales = load4_once(words(tile) + 4 * row);
  }
  return scales;
}

/// Scales 2 i and 2 i + 1 of them, as halves.
DEVICE_FN u32 own_scale_halves(u32 type, u32x4 scales, u32 i) {
  return type == STRIP_MXFP4 ? scale_halves(type, word_of(scales, i / 2) >> (16 * (i % 2)))
                             : word_of(scales, i);
}

/// format_own_multiply: a tile, of which the lane has `scales`, goes into the chain of the lane's
/// row. Parts make room as in format_small_multiply.
#define SMALL_OWN_MULTIPLY(format)                                                        \
  DEVICE_FN f32 format##_own_multiply(u32 type, THREAD_REF(StripTile) tile,               \
                                      THREAD_REF(u32x4) scales, bool has_next,            \
                                      DEVICE(const u8) next, SHARED(const u32) codes,     \
                                      SHARED(const f32) x_scales, u32 lane, f32 before) { \
    const u32x4 levels = small_levels(type);                                              \
    const u32x4 own_scales = scales;                                                      \
    i32 sums[4 * SMALL_RUNS];                                                             \
    UNROLL for (u32 i = 0; i < SMALL_RUNS; ++i) {                                         \
      const u32x2 x = small_run_words(codes, i, lane);                                    \
      tile_product_i8(sums + 4 * i, format##_run(tile, i, levels), x.x, x.y, lane);       \
      if (has_next && format##_ends_piece(i)) {                                           \
        load_small_piece(next, small_head(type), format##_piece_of(i), lane, tile);       \
      }                                                                                   \
    }                                                                                     \
    if (has_next) {                                                                       \
      scales = load_own_scales(type, next, lane);                                         \
    }                                                                                     \
    simdgroup_barrier(); /* the next tile is asked for before the chain */                \
    f32 sum = before;                                                                     \
    UNROLL for (u32 i = 0; i < SMALL_RUNS; ++i) {                                         \
      const u32 both = own_scale_halves(type, own_scales, i / 2);                         \
      const f32 scale = i % 2 == 0u ? first_scale(type, both) : second_scale(type, both); \
      const i32 said = lane % 2 == 0u ? sums[4 * i] : sums[4 * i + 2];                    \
      sum = fma_f32(scale * x_scales[i], f32(said), sum);                                 \
    }                                                                                     \
    return sum;                                                                           \
  }

SMALL_OWN_MULTIPLY(q8_0)
SMALL_OWN_MULTIPLY(four_bits)

DEVICE_FN f32 own_multiply(u32 type, THREAD_REF(StripTile) tile, THREAD_REF(u32x4) scales,
                           bool has_next, DEVICE(const u8) next, SHARED(const u32) codes,
                           SHARED(const f32) x_scales, u32 lane, f32 before) {
  if (type == STRIP_Q8_0) {
    return q8_0_own_multiply(type, tile, scales, has_next, next, codes, x_scales, lane, before);
  }
  return four_bits_own_multiply(type, tile, scales, has_next, next, codes, x_scales, lane, before);
}

// Tiles of any type.

DEVICE_FN void load_tile(u32 type, DEVICE(const u8) tile, u32 lane, THREAD_REF(StripTile) to) {
  if (STRIP_IS_SMALL(type)) {
    small_tile_load(type, tile, lane, to);
  } else {
    tile_load(type, tile, lane, to);
  }
}

/// What a tile says of a row, without a next tile, goes to `terms`; codes, their sums and scales
/// are those of quantize_for().
DEVICE_FN void multiply_for(u32 type, THREAD_REF(StripTile) tile, DEVICE(const u8) matrix,
                            SHARED(const u32) codes, SHARED(const i32) sums,
                            SHARED(const f32) scales, u32 lane, SHARED(f32) terms) {
  if (STRIP_IS_SMALL(type)) {
    SmallProduct product;
    small_multiply(type, tile, false, matrix, codes, lane, product);
    store_small_terms(product, lane, terms);
  } else {
    RowProduct product;
    row_multiply(type, tile, matrix, codes, sums, lane, product);
    store_row_terms(product, scales[0], lane, terms);
  }
}

/// 256 values as a type needs them: 64 words of codes, ROW_SUMS sums or none, a scale or
/// SMALL_RUNS of them.
DEVICE_FN void quantize_for(u32 type, f32x4 low, f32x4 high, u32 lane, SHARED(u32) codes,
                            SHARED(i32) sums, SHARED(f32) scales) {
  if (STRIP_IS_SMALL(type)) {
    quantize_small_block(low, high, lane, codes, scales, 1);
  } else {
    quantize_row_block(low, high, lane, codes, sums, scales);
  }
}

/// One result of a strip's row: terms of n tiles, with the scales of n blocks of codes that begin
/// SMALL_RUNS apart.
DEVICE_FN f32 sum_terms_of(u32 type, SHARED(f32) terms, u32 row, SHARED(const f32) scales, u32 n) {
  return STRIP_IS_SMALL(type) ? add_small_terms(type, terms, row, scales, n, 0.0f)
                              : sum_row_terms(terms + 4 * row, n, type != STRIP_Q6_K);
}

}  // namespace hearth::backend::gpu
