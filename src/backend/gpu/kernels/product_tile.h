#pragma once
/// Tiles of a matrix (kernels/strip_tile.h) for many columns: unpacked once, then multiplied with
/// eight columns of codes after the other. For each format: `load` from the file's blocks,
/// `unpack`, `multiply`, and `factors` that sums are multiplied by.

#include "backend/gpu/kernels/strip_tile.h"
#include "backend/gpu/kernels/tile_product.h"

namespace hearth::backend::gpu {

// Codes of a column in shared memory: 16 groups of four words, of which column c has group u at
// u ^ COLUMN_KEY(c), so that lanes of neighbouring columns meet different banks.
#define COLUMN_WORDS 64
#define COLUMN_KEY(c) (2u * ((c) & 3u) + (((c) >> 2) & 1u))

/// Words of run i of 32 codes of the lane's column of eight: bytes 8 q ... 8 q + 7.
DEVICE_FN u32x2 column_run(SHARED(const u32) codes, u32 first, u32 i, u32 lane) {
  const u32 q = lane % 4;
  const u32 column = first + lane / 4;
  return load2(codes + column * COLUMN_WORDS + 4 * ((2 * i + q / 2) ^ COLUMN_KEY(column)) +
               2 * (q % 2));
}

// Q4_K and Q5_K: a product for each run, times its scale. A run of the tile is unpacked once for
// all columns, whose sums go on side by side.

DEVICE_FN u32 q4_k_codes(u32 low, u32, u32 i) {
  return (low >> (4 * (i % 2))) & 0x0f0f0f0fu;
}
DEVICE_FN u32 q5_k_codes(u32 low, u32 high, u32 i) {
  return ((low >> (4 * (i % 2))) & 0x0f0f0f0fu) | (((high >> i) & 0x01010101u) << 4);
}

/// Goes on with n_groups, a constant, of eight columns; results [TILE_PRODUCT_GROUPS, 4].
#define MULTIPLY_SCALED_TILE(format)                                                              \
  DEVICE_FN void format##_multiply_groups(                                                        \
      THREAD_REF(const StripTile) raw, SHARED(const u32) codes, SHARED(const u32) digits,         \
      SHARED(const f32) scales, u32 n_groups, u32 lane, THREAD(f32) results) {                    \
    const SixBitScales rows[2] = {six_bit_scales(raw.heads[0]), six_bit_scales(raw.heads[1])};    \
    i32 sums[4 * TILE_PRODUCT_GROUPS];                                                            \
    UNROLL for (u32 i = 0; i < 8; ++i) {                                                          \
      const u32x4 run_codes = {format##_codes(raw.pieces[i / 2].x, raw.bits[0].x, i),             \
                               format##_codes(raw.pieces[i / 2].y, raw.bits[0].y, i),             \
                               format##_codes(raw.pieces[i / 2].z, raw.bits[0].z, i),             \
                               format##_codes(raw.pieces[i / 2].w, raw.bits[0].w, i)};            \
      const i32 run_scales[2] = {unsigned_byte(rows[0].scales[i / 4], i % 4),                     \
                                 unsigned_byte(rows[1].scales[i / 4], i % 4)};                    \
      UNROLL for (u32 group = 0; group < n_groups; ++group) {                                     \
        const u32x2 b = column_run(codes, 8 * group, i, lane);                                    \
        i32 run[4];                                                                               \
        tile_product_u8(run, run_codes, b.x, b.y, lane);                                          \
        UNROLL for (u32 j = 0; j < 4; ++j) {                                                      \
          sums[4 * group + j] = run[j] * run_scales[j / 2] + (i == 0u ? 0 : sums[4 * group + j]); \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
    const u32 minima[2] = {lane_minima(rows[0], lane), lane_minima(rows[1], lane)};               \
    UNROLL for (u32 group = 0; group < n_groups; ++group) {                                       \
      const u32x2 both = load2(digits + 8 * (8 * group + lane / 4) + 2 * (lane % 4));             \
      const StripCodes column_sums = {lane, both.x, both.y};                                      \
      i32 offsets[4];                                                                             \
      multiply_sums(minima[0], minima[1], column_sums, false, offsets);                           \
      UNROLL for (u32 j = 0; j < 4; ++j) {                                                        \
        const f32 scale = scales[8 * group + 2 * (lane % 4) + j % 2];                             \
        const u32 head = raw.heads[j / 2].x;                                                      \
        const f32 factor = to_f32(f16_of_bits(head & 0xffffu)) * scale;                           \
        const f32 offset_factor = -to_f32(f16_of_bits(head >> 16)) * scale;                       \
        const f32 result = fma_f32(factor, f32(sums[4 * group + j]), results[4 * group + j]);     \
        results[4 * group + j] = fma_f32(offset_factor, f32(offsets[j]), result);                 \
      }                                                                                           \
    }                                                                                             \
  }

MULTIPLY_SCALED_TILE(q4_k)
MULTIPLY_SCALED_TILE(q5_k)

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

DEVICE_FN void q6_k_multiply_groups(THREAD_REF(const StripTile) raw, SHARED(const u32) codes,
                                    SHARED(const u32), SHARED(const f32) scales, u32 n_groups,
                                    u32 lane, THREAD(f32) results) {
  DigitTile tile;
  q6_k_tile_unpack(raw, lane, tile);
  UNROLL for (u32 group = 0; group < n_groups; ++group) {
    i32 low[4] = {0, 0, 0, 0};
    i32 high[4] = {0, 0, 0, 0};
    UNROLL for (u32 i = 0; i < 8; ++i) {
      const u32x2 b = column_run(codes, 8 * group, i, lane);
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
