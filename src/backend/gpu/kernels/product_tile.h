#pragma once
/// Tiles of a matrix (kernels/strip_tile.h) for many columns: unpacked once, then multiplied with
/// eight columns of codes after the other. For each format: `load` from the file's blocks,
/// `unpack`, `multiply`, and `factors` that sums are multiplied by.

#include "backend/gpu/kernels/strip_tile.h"

namespace hearth::backend::gpu {

/// Exact sums of a tile and eight columns, in the order of sums of a tile.
struct TileSums {
  i32 values[4];
  i32 offsets[4];
};

// Codes of a column in shared memory: 16 groups of four words, of which column c has group u at
// u ^ COLUMN_KEY(c), so that lanes of neighbouring columns meet different banks.
#define COLUMN_WORDS 64
#define COLUMN_KEY(c) (2u * ((c) & 3u) + (((c) >> 2) & 1u))

/// The lane's view of eight columns.
struct TileColumns {
  u32 lane;
  u32 key;         // of its column
  u32 column;      // word at which that begins
  u32 low_digits;  // of its four sums
  u32 high_digits;
};

/// `digits`: [columns][4][2]: of each four sums of 16 codes the low six bits, and the rest.
DEVICE_FN TileColumns tile_columns(SHARED(const u32) digits, u32 first, bool has_sums, u32 lane) {
  const u32 column = first + lane / 4;
  TileColumns columns = {lane, COLUMN_KEY(column), column * COLUMN_WORDS, 0, 0};
  if (has_sums) {
    const u32x2 both = load2(digits + 8 * column + 2 * (lane % 4));
    columns.low_digits = both.x;
    columns.high_digits = both.y;
  }
  return columns;
}

/// Words of run i of 32 codes: bytes 8 q ... 8 q + 7 of the lane's column.
DEVICE_FN u32x2 column_run(SHARED(const u32) codes, THREAD_REF(const TileColumns) columns, u32 i) {
  const u32 q = columns.lane % 4;
  return load2(codes + columns.column + 4 * ((2 * i + q / 2) ^ columns.key) + 2 * (q % 2));
}

// Q4_K and Q5_K: a product for each run, times its scale.

struct ScaledTile {
  u32x4 codes[8];         // of each run of 32, as integer tiles take them
  u32 scales[2][2];       // of rows g and g + 8: a byte for each run
  u32 minima[2];          // bytes: what the lane's four sums of 16 codes are multiplied by
  f32 factors[2];         // of the exact sum
  f32 offset_factors[2];  // of the exact sum of minima
};

DEVICE_FN u32 q4_k_codes(u32 low, u32, u32 i) {
  return (low >> (4 * (i % 2))) & 0x0f0f0f0fu;
}
DEVICE_FN u32 q5_k_codes(u32 low, u32 high, u32 i) {
  return ((low >> (4 * (i % 2))) & 0x0f0f0f0fu) | (((high >> i) & 0x01010101u) << 4);
}

DEVICE_FN void unpack_k_scales(THREAD_REF(const StripTile) raw, u32 lane,
                               THREAD_REF(ScaledTile) tile) {
  UNROLL for (u32 r = 0; r < 2; ++r) {
    const SixBitScales scales = six_bit_scales(raw.heads[r]);
    tile.scales[r][0] = scales.scales[0];
    tile.scales[r][1] = scales.scales[1];
    tile.minima[r] = lane_minima(scales, lane);
    tile.factors[r] = to_f32(f16_of_bits(raw.heads[r].x & 0xffffu));
    tile.offset_factors[r] = -to_f32(f16_of_bits(raw.heads[r].x >> 16));
  }
}

#define UNPACK_SCALED_TILE(format)                                               \
  DEVICE_FN void format##_tile_unpack(THREAD_REF(const StripTile) raw, u32 lane, \
                                      THREAD_REF(ScaledTile) tile) {             \
    unpack_k_scales(raw, lane, tile);                                            \
    UNROLL for (u32 i = 0; i < 8; ++i) {                                         \
      tile.codes[i].x = format##_codes(raw.pieces[i / 2].x, raw.bits[0].x, i);   \
      tile.codes[i].y = format##_codes(raw.pieces[i / 2].y, raw.bits[0].y, i);   \
      tile.codes[i].z = format##_codes(raw.pieces[i / 2].z, raw.bits[0].z, i);   \
      tile.codes[i].w = format##_codes(raw.pieces[i / 2].w, raw.bits[0].w, i);   \
    }                                                                            \
  }

UNPACK_SCALED_TILE(q4_k)
UNPACK_SCALED_TILE(q5_k)

DEVICE_FN void multiply_columns(THREAD_REF(const ScaledTile) tile, SHARED(const u32) codes,
                                THREAD_REF(const TileColumns) columns, THREAD_REF(TileSums) sums) {
  const StripCodes digits = {columns.lane, columns.low_digits, columns.high_digits};
  multiply_sums(tile.minima[0], tile.minima[1], digits, false, sums.offsets);
  UNROLL for (u32 j = 0; j < 4; ++j) {
    sums.values[j] = 0;
  }
  UNROLL for (u32 i = 0; i < 8; ++i) {
    const u32x2 b = column_run(codes, columns, i);
    i32 run[4] = {0, 0, 0, 0};
    add_tile_product_u8(run, tile.codes[i], b.x, b.y, columns.lane);
    UNROLL for (u32 j = 0; j < 4; ++j) {
      sums.values[j] += run[j] * unsigned_byte(tile.scales[j / 2][i / 4], i % 4);
    }
  }
}

// Q6_K: weights times their scales, 13 bits and a sign, as two digits that are multiplied apart.
// Twice such a weight is 256 times a signed byte and an even unsigned one.

struct DigitTile {
  u32x4 low[8];  // of each run of 32, as integer tiles take them
  u32x4 high[8];
  f32 factors[2];         // of rows g and g + 8
  f32 offset_factors[2];  // 0
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
    tile.offset_factors[r] = 0.0f;
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

DEVICE_FN void multiply_columns(THREAD_REF(const DigitTile) tile, SHARED(const u32) codes,
                                THREAD_REF(const TileColumns) columns, THREAD_REF(TileSums) sums) {
  i32 low[4] = {0, 0, 0, 0};
  i32 high[4] = {0, 0, 0, 0};
  UNROLL for (u32 i = 0; i < 8; ++i) {
    const u32x2 b = column_run(codes, columns, i);
    add_tile_product_u8(low, tile.low[i], b.x, b.y, columns.lane);
    add_tile_product_i8(high, tile.high[i], b.x, b.y, columns.lane);
  }
  UNROLL for (u32 j = 0; j < 4; ++j) {
    sums.values[j] = (256 * high[j] + low[j]) >> 1;
    sums.offsets[j] = 0;
  }
}

}  // namespace hearth::backend::gpu
