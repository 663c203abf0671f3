#pragma once
/// Tiles (kernels/strip_tile.h) times the codes of a single row. The columns of an integer tile,
/// which several rows would have, keep a tile's scales apart: column c of the sums gets the codes
/// of one scale alone, the others zeroes, and lane 4 g + q of rows g and g + 8 has the sums of
/// columns 2 q and 2 q + 1, which it scales. Bits of a code that share a byte with others stay
/// where they are: the sums of a column are as many times too large.

#include "backend/gpu/kernels/strip_tile.h"

namespace hearth::backend::gpu {

#define ROW_SUMS 16  // of a block of codes: of 16 codes each

/// What a tile says of rows g and g + 8.
struct RowProduct {
  i32 values[2];
  i32 offsets[2];
  f32 factors[2];
  f32 offset_factors[2];
};

/// The lane's share of a block of codes: words of its column, sums of what it scales.
struct RowCodes {
  u32x2 words[2];
  i32 sums[4];
};

/// The sum over the four lanes of a row.
DEVICE_FN i32 sum_of_four(i32 value) {
  value += i32(shuffle_xor(u32(value), 1));
  return value + i32(shuffle_xor(u32(value), 2));
}

/// Words 2 q and 2 q + 1 of run i of 32 codes.
DEVICE_FN u32x2 run_words(SHARED(const u32) codes, u32 i, u32 q) {
  return load2(codes + (16 * (i / 2) + 4 * q + 2 * (i % 2)));
}

DEVICE_FN u32x2 words_if(bool condition, u32x2 words) {
  const u32x2 result = {condition ? words.x : 0u, condition ? words.y : 0u};
  return result;
}

DEVICE_FN u32x4 masked_words(u32x4 words, u32 mask) {
  const u32x4 result = {words.x & mask, words.y & mask, words.z & mask, words.w & mask};
  return result;
}

// Q4_K and Q5_K: column c gets run c.

DEVICE_FN RowCodes q4_k_row_codes(SHARED(const u32) codes, SHARED(const i32) sums, u32 lane) {
  const u32 q = lane % 4;
  RowCodes mine;
  mine.words[0] = run_words(codes, lane / 4, q);
  mine.sums[0] = sums[4 * q] + sums[4 * q + 1];
  mine.sums[1] = sums[4 * q + 2] + sums[4 * q + 3];
  return mine;
}
#define q5_k_row_codes q4_k_row_codes

/// Row r of the lane, of which even and odd are the sums of runs 2 q and 2 q + 1.
DEVICE_FN void scale_runs(THREAD_REF(const StripTile) tile, THREAD_REF(const RowCodes) mine,
                          i32 even, i32 odd, u32 q, u32 r, THREAD_REF(RowProduct) product) {
  const SixBitScales six = six_bit_scales(tile.heads[r]);
  const u32 scales = (q < 2u ? six.scales[0] : six.scales[1]) >> (16 * (q % 2));
  const u32 minima = (q < 2u ? six.minima[0] : six.minima[1]) >> (16 * (q % 2));
  product.values[r] = sum_of_four(even * unsigned_byte(scales, 0) + odd * unsigned_byte(scales, 1));
  product.offsets[r] = sum_of_four(mine.sums[0] * unsigned_byte(minima, 0) +
                                   mine.sums[1] * unsigned_byte(minima, 1));
  product.factors[r] = to_f32(f16_of_bits(tile.heads[r].x & 0xffffu));
  product.offset_factors[r] = -to_f32(f16_of_bits(tile.heads[r].x >> 16));
}

#define K_ROW_MULTIPLY(format, has_fifth)                                                          \
  DEVICE_FN void format##_row_multiply(THREAD_REF(const StripTile) tile,                           \
                                       THREAD_REF(const RowCodes) mine, u32 lane,                  \
                                       THREAD_REF(RowProduct) product) {                           \
    const u32 q = lane % 4;                                                                        \
    i32 evens[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}; /* two chains wait less than one */            \
    i32 odds[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};                                                 \
    i32 fifths[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};                                               \
    UNROLL for (u32 i = 0; i < 4; ++i) {                                                           \
      const u32x2 even = words_if(lane / 4 == 2 * i, mine.words[0]);                               \
      const u32x2 odd = words_if(lane / 4 == 2 * i + 1, mine.words[0]);                            \
      add_tile_product_u8(evens[i % 2], masked_words(tile.pieces[i], 0x0f0f0f0fu), even.x, even.y, \
                          lane);                                                                   \
      add_tile_product_u8(odds[i % 2], masked_words(tile.pieces[i], 0xf0f0f0f0u), odd.x, odd.y,    \
                          lane);                                                                   \
      if (has_fifth) {                                                                             \
        add_tile_product_u8(fifths[0], masked_words(tile.bits[0], 0x01010101u << (2 * i)), even.x, \
                            even.y, lane);                                                         \
        add_tile_product_u8(fifths[1], masked_words(tile.bits[0], 0x02020202u << (2 * i)), odd.x,  \
                            odd.y, lane);                                                          \
      }                                                                                            \
    }                                                                                              \
    UNROLL for (u32 r = 0; r < 2; ++r) {                                                           \
      i32 even = evens[0][2 * r] + evens[1][2 * r];                                                \
      i32 odd = (odds[0][2 * r + 1] + odds[1][2 * r + 1]) >> 4;                                    \
      if (has_fifth) {                                                                             \
        even += (fifths[0][2 * r] >> (2 * q)) << 4;                                                \
        odd += (fifths[1][2 * r + 1] >> (2 * q + 1)) << 4;                                         \
      }                                                                                            \
      scale_runs(tile, mine, even, odd, q, r, product);                                            \
    }                                                                                              \
  }

K_ROW_MULTIPLY(q4_k, false)
K_ROW_MULTIPLY(q5_k, true)

// Q6_K: columns 2 c and 2 c + 1 get the halves of run c, and those of run c + 4 in a second tile.

DEVICE_FN RowCodes q6_k_row_codes(SHARED(const u32) codes, SHARED(const i32) sums, u32 lane) {
  const u32 q = lane % 4;
  const bool is_in_column = (q < 2u) == (lane / 4 % 2 == 0u);
  RowCodes mine;
  UNROLL for (u32 k = 0; k < 2; ++k) {
    mine.words[k] = words_if(is_in_column, run_words(codes, lane / 8 + 4 * k, q));
    mine.sums[2 * k] = sums[8 * k + 2 * q];
    mine.sums[2 * k + 1] = sums[8 * k + 2 * q + 1];
  }
  return mine;
}

DEVICE_FN void q6_k_row_multiply(THREAD_REF(const StripTile) tile, THREAD_REF(const RowCodes) mine,
                                 u32 lane, THREAD_REF(RowProduct) product) {
  const u32 q = lane % 4;
  i32 totals[2] = {0, 0};
  UNROLL for (u32 k = 0; k < 2; ++k) {
    i32 low[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    i32 high[4] = {0, 0, 0, 0};
    UNROLL for (u32 i = 0; i < 4; ++i) {
      const u32x2 x = words_if(lane / 8 == i, mine.words[k]);
      add_tile_product_u8(
          low[i % 2], masked_words(tile.pieces[2 * k + i % 2], i < 2u ? 0x0f0f0f0fu : 0xf0f0f0f0u),
          x.x, x.y, lane);
      add_tile_product_u8(high, masked_words(tile.bits[k], 0x03030303u << (2 * i)), x.x, x.y, lane);
    }
    UNROLL for (u32 r = 0; r < 2; ++r) {
      const u32x4 head = tile.heads[r];
      const u32 scales = word_of(head, 2 * k + q / 2) >> (16 * (q % 2));
      UNROLL for (u32 h = 0; h < 2; ++h) {
        const i32 lower = (low[0][2 * r + h] + low[1][2 * r + h]) >> (q < 2u ? 0u : 4u);
        // Codes are 32 less than what is stored.
        const i32 sum = lower + ((high[2 * r + h] >> (2 * q)) << 4) - 32 * mine.sums[2 * k + h];
        totals[r] += sum * signed_byte_of(scales, h);
      }
    }
  }
  UNROLL for (u32 r = 0; r < 2; ++r) {
    product.values[r] = sum_of_four(totals[r]);
    product.offsets[r] = 0;
    product.factors[r] = to_f32(f16_of_bits(tile.factor[r]));
    product.offset_factors[r] = 0.0f;
  }
}

/// By StripParams::type.
DEVICE_FN void row_multiply(u32 type, THREAD_REF(const StripTile) tile, SHARED(const u32) codes,
                            SHARED(const i32) sums, u32 lane, THREAD_REF(RowProduct) product) {
  if (type == STRIP_Q4_K) {
    q4_k_row_multiply(tile, q4_k_row_codes(codes, sums, lane), lane, product);
  } else if (type == STRIP_Q5_K) {
    q5_k_row_multiply(tile, q5_k_row_codes(codes, sums, lane), lane, product);
  } else {
    q6_k_row_multiply(tile, q6_k_row_codes(codes, sums, lane), lane, product);
  }
}

}  // namespace hearth::backend::gpu
