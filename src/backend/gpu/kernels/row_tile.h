#pragma once
/// Tiles (kernels/strip_tile.h) times the codes of a single row. The columns of an integer tile,
/// which several rows would have, keep a tile's scales apart: column c of the sums gets the codes
/// of one scale alone, the others zeroes, and lane 4 g + q of rows g and g + 8 has the sums of
/// columns 2 q and 2 q + 1, which it scales. Bits of a code that share a byte with others stay
/// where they are: the sums of a column are as many times too large.

#include "backend/gpu/kernels/strip_tile.h"

namespace hearth::backend::gpu {

#define ROW_SUMS 16  // of a block of codes: of 16 codes each

/// What a tile says: lane 4 g + q has of row g + 8 (q % 2) for q < 2 the sum of values, otherwise
/// that of offsets, and what it is multiplied by.
struct RowProduct {
  i32 sum;
  f32 factor;
};

/// The lane's share of a block of codes: words of its column, sums of what it scales.
struct RowCodes {
  u32x2 words[2];
  i32 sums[4];
};

/// Both lanes of a pair bring two numbers and keep the sums of one: the lane with `keeps_second` of
/// the second.
DEVICE_FN i32 sum_of_pair(i32 first, i32 second, bool keeps_second, u32 distance) {
  const i32 given = keeps_second ? first : second;
  return (keeps_second ? second : first) + i32(shuffle_xor(u32(given), distance));
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

/// Bytes of scales and minima of runs 2 q and 2 q + 1, where the first lane of a row has 0.
struct TwoScales {
  u32 scales;
  u32 minima;
};

DEVICE_FN TwoScales two_scales(u32x4 head, u32 q) {
  // The first four are stored whole, of the others four bits here and two there.
  const u32 half_word = 16 * (q % 2);
  const u32 shift = q < 2u ? 0u : 2u;
  const u32 mask = q < 2u ? 0x3f3fu : 0x3030u;
  const u32 low_mask = q < 2u ? 0u : 0x0f0fu;
  const u32 low = head.w >> half_word;
  const TwoScales two = {(((head.y >> half_word) >> shift) & mask) | (low & low_mask),
                         (((head.z >> half_word) >> shift) & mask) | ((low >> 4) & low_mask)};
  return two;
}

/// The lane's sums of runs 2 q and 2 q + 1 in rows g and g + 8 become what the row says.
DEVICE_FN void scale_runs(THREAD_REF(const StripTile) tile, RowCodes mine, THREAD(const i32) evens,
                          THREAD(const i32) odds, u32 q, THREAD_REF(RowProduct) product) {
  i32 values[2];
  i32 offsets[2];
  UNROLL for (u32 r = 0; r < 2; ++r) {
    const TwoScales two = two_scales(tile.heads[r], q);
    values[r] = evens[r] * unsigned_byte(two.scales, 0) + odds[r] * unsigned_byte(two.scales, 1);
    offsets[r] =
        mine.sums[0] * unsigned_byte(two.minima, 0) + mine.sums[1] * unsigned_byte(two.minima, 1);
  }
  const bool has_offset = q >= 2u;
  const bool is_second_row = q % 2 != 0u;
  product.sum = sum_of_pair(sum_of_pair(values[0], offsets[0], has_offset, 2),
                            sum_of_pair(values[1], offsets[1], has_offset, 2), is_second_row, 1);
  const u32 both = is_second_row ? tile.heads[1].x : tile.heads[0].x;
  const f32 factor = to_f32(f16_of_bits((has_offset ? both >> 16 : both) & 0xffffu));
  product.factor = has_offset ? -factor : factor;
}

/// format_row_multiply: with has_next, each part of the tile makes room for that of the tile at
/// `next` as it has been used.
#define K_ROW_MULTIPLY(format, has_fifth)                                              \
  DEVICE_FN void format##_row_multiply(THREAD_REF(StripTile) tile, bool has_next,      \
                                       DEVICE(const u8) next, RowCodes mine, u32 lane, \
                                       THREAD_REF(RowProduct) product) {               \
    const u32 q = lane % 4;                                                            \
    i32 low[4];                                                                        \
    i32 high[4];                                                                       \
    i32 even_fifth[4];                                                                 \
    i32 odd_fifth[4];                                                                  \
    UNROLL for (u32 i = 0; i < 4; ++i) {                                               \
      const u32x2 even = words_if(lane / 4 == 2 * i, mine.words[0]);                   \
      const u32x2 odd = words_if(lane / 4 == 2 * i + 1, mine.words[0]);                \
      const u32x4 even_codes = masked_words(tile.pieces[i], 0x0f0f0f0fu);              \
      const u32x4 odd_codes = masked_words(tile.pieces[i], 0xf0f0f0f0u);               \
      if (has_next) {                                                                  \
        load_piece_once(next, i, lane, tile);                                          \
      }                                                                                \
      const u32x4 even_bits = masked_words(tile.bits[0], 0x01010101u << (2 * i));      \
      const u32x4 odd_bits = masked_words(tile.bits[0], 0x02020202u << (2 * i));       \
      if (i == 0u) {                                                                   \
        tile_product_u8(low, even_codes, even.x, even.y, lane);                        \
        tile_product_u8(high, odd_codes, odd.x, odd.y, lane);                          \
      } else {                                                                         \
        add_tile_product_u8(low, even_codes, even.x, even.y, lane);                    \
        add_tile_product_u8(high, odd_codes, odd.x, odd.y, lane);                      \
      }                                                                                \
      if (has_fifth) {                                                                 \
        if (i == 0u) {                                                                 \
          tile_product_u8(even_fifth, even_bits, even.x, even.y, lane);                \
          tile_product_u8(odd_fifth, odd_bits, odd.x, odd.y, lane);                    \
        } else {                                                                       \
          add_tile_product_u8(even_fifth, even_bits, even.x, even.y, lane);            \
          add_tile_product_u8(odd_fifth, odd_bits, odd.x, odd.y, lane);                \
        }                                                                              \
      }                                                                                \
    }                                                                                  \
    if (has_fifth && has_next) {                                                       \
      load_bits_once(next, 0, lane, tile);                                             \
    }                                                                                  \
    i32 evens[2];                                                                      \
    i32 odds[2];                                                                       \
    UNROLL for (u32 r = 0; r < 2; ++r) {                                               \
      evens[r] = low[2 * r];                                                           \
      odds[r] = high[2 * r + 1] >> 4;                                                  \
      if (has_fifth) {                                                                 \
        evens[r] += (even_fifth[2 * r] >> (2 * q)) << 4;                               \
        odds[r] += (odd_fifth[2 * r + 1] >> (2 * q + 1)) << 4;                         \
      }                                                                                \
    }                                                                                  \
    scale_runs(tile, mine, evens, odds, q, product);                                   \
    UNROLL for (u32 r = 0; r < 2; ++r) {                                               \
      if (has_next) {                                                                  \
        load_head(next, r, lane, tile);                                                \
      }                                                                                \
    }                                                                                  \
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

DEVICE_FN void q6_k_row_multiply(THREAD_REF(StripTile) tile, bool has_next, DEVICE(const u8) next,
                                 RowCodes mine, u32 lane, THREAD_REF(RowProduct) product) {
  const u32 q = lane % 4;
  i32 totals[2] = {0, 0};
  UNROLL for (u32 k = 0; k < 2; ++k) {
    i32 low[4];   // of four bits
    i32 high[4];  // of two
    UNROLL for (u32 i = 0; i < 4; ++i) {
      const u32x2 x = words_if(lane / 8 == i, mine.words[k]);
      const u32x4 low_words = masked_words(tile.pieces[2 * k + i % 2],  //
                                           i < 2u ? 0x0f0f0f0fu : 0xf0f0f0f0u);
      const u32x4 high_words = masked_words(tile.bits[k], 0x03030303u << (2 * i));
      if (i == 0u) {
        tile_product_u8(low, low_words, x.x, x.y, lane);
        tile_product_u8(high, high_words, x.x, x.y, lane);
      } else {
        add_tile_product_u8(low, low_words, x.x, x.y, lane);
        add_tile_product_u8(high, high_words, x.x, x.y, lane);
      }
    }
    if (has_next) {
      load_piece_once(next, 2 * k, lane, tile);
      load_piece_once(next, 2 * k + 1, lane, tile);
      load_bits_once(next, k, lane, tile);
    }
    UNROLL for (u32 r = 0; r < 2; ++r) {
      const u32 scales = word_of(tile.heads[r], 2 * k + q / 2) >> (16 * (q % 2));
      UNROLL for (u32 h = 0; h < 2; ++h) {
        const i32 sum = (low[2 * r + h] >> (q < 2u ? 0u : 4u)) +
                        ((high[2 * r + h] >> (2 * q)) << 4) -
                        32 * mine.sums[2 * k + h];  // codes are 32 less than what is stored
        totals[r] += sum * signed_byte_of(scales, h);
      }
    }
  }
  UNROLL for (u32 r = 0; r < 2; ++r) {
    totals[r] += i32(shuffle_xor(u32(totals[r]), 2));
  }
  const bool is_second_row = q % 2 != 0u;
  product.sum = sum_of_pair(totals[0], totals[1], is_second_row, 1);
  product.factor =
      q < 2u ? to_f32(f16_of_bits(is_second_row ? tile.factor[1] : tile.factor[0])) : 0.0f;
  UNROLL for (u32 r = 0; r < 2; ++r) {
    if (has_next) {
      load_head(next, r, lane, tile);
      load_factor(next, r, lane, tile);
    }
  }
}

/// By StripParams::type, without a next tile.
DEVICE_FN void row_multiply(u32 type, THREAD_REF(StripTile) tile, DEVICE(const u8) matrix,
                            SHARED(const u32) codes, SHARED(const i32) sums, u32 lane,
                            THREAD_REF(RowProduct) product) {
  if (type == STRIP_Q4_K) {
    q4_k_row_multiply(tile, false, matrix, q4_k_row_codes(codes, sums, lane), lane, product);
  } else if (type == STRIP_Q5_K) {
    q5_k_row_multiply(tile, false, matrix, q5_k_row_codes(codes, sums, lane), lane, product);
  } else {
    q6_k_row_multiply(tile, false, matrix, q6_k_row_codes(codes, sums, lane), lane, product);
  }
}

}  // namespace hearth::backend::gpu
