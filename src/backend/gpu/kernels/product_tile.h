#pragma once
/// Tiles of a matrix (kernels/strip_tile.h) for many columns: what is unpacked is multiplied with
/// all of them, eight at a time.

#include "backend/gpu/kernels/strip_tile.h"
#include "backend/gpu/kernels/tile_product.h"

namespace hearth::backend::gpu {

// Of a column's codes in shared memory the group u of four words is at u ^ COLUMN_KEY(c), so that
// lanes of neighbouring columns meet different banks.
#define COLUMN_KEY(c) (2u * ((c) & 3u) + (((c) >> 2) & 1u))
#define COLUMN_WORDS 64       // of a block
#define COLUMN_HALF_WORDS 32  // of half of it

/// Words of run i of the lane's column of eight, which has n_words: bytes 8 q ... 8 q + 7.
DEVICE_FN u32x2 column_run(SHARED(const u32) codes, u32 n_words, u32 first, u32 i, u32 lane) {
  const u32 q = lane % 4;
  const u32 column = first + lane / 4;
  return load2(codes + column * n_words + 4 * ((2 * i + q / 2) ^ COLUMN_KEY(column)) + 2 * (q % 2));
}

// Q4_K and Q5_K: a product for each run, times its scale. A run of the tile is unpacked once for
// all columns, whose sums go on side by side; half a block at a time, so that the other half's
// columns are on their way.

DEVICE_FN u32 q4_k_codes(u32 low, u32, u32 i) {
  return (low >> (4 * (i % 2))) & 0x0f0f0f0fu;
}
DEVICE_FN u32 q5_k_codes(u32 low, u32 high, u32 i) {
  return ((low >> (4 * (i % 2))) & 0x0f0f0f0fu) | (((high >> i) & 0x01010101u) << 4);
}

/// What the lane makes of the heads of rows g and g + 8.
struct ScaledRows {
  u32 scales[2][2];  // a byte for each run
  u32 minima[2];     // what the lane's four sums of 16 codes are multiplied by
  u32 factors[2];    // f16, of the exact sum, and of that of minima
};

DEVICE_FN ScaledRows scaled_rows(u32x4 head, u32x4 head8, u32 lane) {
  const SixBitScales low = six_bit_scales(head);
  const SixBitScales high = six_bit_scales(head8);
  const ScaledRows rows = {{{low.scales[0], low.scales[1]}, {high.scales[0], high.scales[1]}},
                           {lane_minima(low, lane), lane_minima(high, lane)},
                           {head.x, head8.x}};
  return rows;
}

/// Goes on with the first or second half of a block of n_groups, a constant, of eight columns; sums
/// [TILE_PRODUCT_GROUPS, 4].
#define MULTIPLY_SCALED_HALF(format)                                                       \
  DEVICE_FN void format##_multiply_half(                                                   \
      THREAD_REF(const StripTile) raw, THREAD_REF(const ScaledRows) rows, u32 second,      \
      SHARED(const u32) codes, u32 n_groups, u32 lane, THREAD(i32) sums) {                 \
    UNROLL for (u32 i = 0; i < 4; ++i) {                                                   \
      const u32 run_of_block = 4 * second + i;                                             \
      const u32x4 piece = raw.pieces[run_of_block / 2];                                    \
      const u32x4 run_codes = {format##_codes(piece.x, raw.bits[0].x, run_of_block),       \
                               format##_codes(piece.y, raw.bits[0].y, run_of_block),       \
                               format##_codes(piece.z, raw.bits[0].z, run_of_block),       \
                               format##_codes(piece.w, raw.bits[0].w, run_of_block)};      \
      const i32 run_scales[2] = {unsigned_byte(rows.scales[0][second], i),                 \
                                 unsigned_byte(rows.scales[1][second], i)};                \
      UNROLL for (u32 group = 0; group < n_groups; ++group) {                              \
        const u32x2 b = column_run(codes, COLUMN_HALF_WORDS, 8 * group, i, lane);          \
        i32 run[4];                                                                        \
        tile_product_u8(run, run_codes, b.x, b.y, lane);                                   \
        UNROLL for (u32 j = 0; j < 4; ++j) {                                               \
          sums[4 * group + j] =                                                            \
              run[j] * run_scales[j / 2] + (run_of_block == 0u ? 0 : sums[4 * group + j]); \
        }                                                                                  \
      }                                                                                    \
    }                                                                                      \
  }

MULTIPLY_SCALED_HALF(q4_k)
MULTIPLY_SCALED_HALF(q5_k)

/// The next links of the chains of n_groups, a constant, of eight columns; results
/// [TILE_PRODUCT_GROUPS, 4].
DEVICE_FN void add_scaled_links(THREAD_REF(const ScaledRows) rows, SHARED(const u32) digits,
                                SHARED(const f32) scales, u32 n_groups, u32 lane,
                                THREAD(const i32) sums, THREAD(f32) results) {
  UNROLL for (u32 group = 0; group < n_groups; ++group) {
    const u32x2 both = load2(digits + 8 * (8 * group + lane / 4) + 2 * (lane % 4));
    i32 low[4] = {0, 0, 0, 0};
    i32 high[4] = {0, 0, 0, 0};
    add_half_tile_product_u8(low, rows.minima[0], rows.minima[1], both.x, lane);
    add_half_tile_product_u8(high, rows.minima[0], rows.minima[1], both.y, lane);
    UNROLL for (u32 j = 0; j < 4; ++j) {
      const f32 scale = scales[8 * group + 2 * (lane % 4) + j % 2];
      const u32 factors = rows.factors[j / 2];
      const f32 factor = to_f32(f16_of_bits(factors & 0xffffu)) * scale;
      const f32 offset_factor = -to_f32(f16_of_bits(factors >> 16)) * scale;
      const f32 result = fma_f32(factor, f32(sums[4 * group + j]), results[4 * group + j]);
      results[4 * group + j] = fma_f32(offset_factor, f32(64 * high[j] + low[j]), result);
    }
  }
}

// Q6_K: weights times their scales, 13 bits and a sign, as two digits that are multiplied apart.
// Twice such a weight is 256 times a signed byte and an even unsigned one.

struct DigitTile {
  u32x4 low[8];  // of each run of 32, as integer tiles take them
  u32x4 high[8];
  f32 factors[2];  // of rows g and g + 8
};

/// Digits of four weights: low and high.
struct WeightDigits {
  u32 low;
  u32 high;
};

/// `codes` are 32 more than the weights' own. Each half of a word becomes twice a weight times
/// `scale`, or for the upper one 1 more, of which no digit says anything.
DEVICE_FN WeightDigits weight_digits(u32 codes, i32 scale) {
  const u32 twice = u32(2 * scale);
  const u32 less = u32(scale) * (0u - 64u * 0x00010001u) + 0x00010000u;
  const u32 even = (codes & 0x00ff00ffu) * twice + less;
  const u32 odd = ((codes >> 8) & 0x00ff00ffu) * twice + less;
  const WeightDigits result = {pick_bytes(even, odd, 0x6240u) & 0xfefefefeu,
                               pick_bytes(even, odd, 0x7351u)};
  return result;
}

/// Scale of the half of run i that the lane's bytes are of.
DEVICE_FN i32 half_run_scale(u32x4 scales, u32 i, u32 lane) {
  return signed_byte_of(word_of(scales, i / 2) >> (8 * (lane % 4 / 2)), 2 * (i % 2));
}

DEVICE_FN void q6_k_tile_unpack(THREAD_REF(const StripTile) raw, u32 lane,
                                THREAD_REF(DigitTile) tile) {
  UNROLL for (u32 r = 0; r < 2; ++r) {
    tile.factors[r] = to_f32(f16_of_bits(raw.factor[r]));
  }
  UNROLL for (u32 i = 0; i < 8; ++i) {
    WeightDigits digits[4];  // in the order of a tile's words
    UNROLL for (u32 r = 0; r < 2; ++r) {
      const i32 scale = half_run_scale(raw.heads[r], i, lane);
      const u32x4 low = raw.pieces[2 * (i / 4) + i % 2];
      const u32x4 high = raw.bits[i / 4];
      digits[r] = weight_digits(
          r == 0u ? q6_k_codes(low.x, high.x, i) : q6_k_codes(low.y, high.y, i), scale);
      digits[2 + r] = weight_digits(
          r == 0u ? q6_k_codes(low.z, high.z, i) : q6_k_codes(low.w, high.w, i), scale);
    }
    const u32x4 low = {digits[0].low, digits[1].low, digits[2].low, digits[3].low};
    const u32x4 high = {digits[0].high, digits[1].high, digits[2].high, digits[3].high};
    tile.low[i] = low;
    tile.high[i] = high;
  }
}

/// Goes on with a block of n_groups, a constant, of eight columns; results [TILE_PRODUCT_GROUPS,
/// 4].
DEVICE_FN void q6_k_multiply_groups(THREAD_REF(const StripTile) raw, SHARED(const u32) codes,
                                    SHARED(const f32) scales, u32 n_groups, u32 lane,
                                    THREAD(f32) results) {
  DigitTile tile;
  q6_k_tile_unpack(raw, lane, tile);
  UNROLL for (u32 group = 0; group < n_groups; ++group) {
    i32 low[4] = {0, 0, 0, 0};
    i32 high[4] = {0, 0, 0, 0};
    UNROLL for (u32 i = 0; i < 8; ++i) {
      const u32x2 b = column_run(codes, COLUMN_WORDS, 8 * group, i, lane);
      add_tile_product_u8(low, tile.low[i], b.x, b.y, lane);
      add_tile_product_i8(high, tile.high[i], b.x, b.y, lane);
    }
    UNROLL for (u32 j = 0; j < 4; ++j) {
      const i32 sum = (256 * high[j] + low[j]) >> 1;
      const f32 scale = scales[8 * group + 2 * (lane % 4) + j % 2];
      results[4 * group + j] =
          fma_f32(tile.factors[j / 2] * scale, f32(sum), results[4 * group + j]);
    }
  }
}

}  // namespace hearth::backend::gpu
