#pragma once
/// Tiles (kernels/strip_tile.h) times the codes of up to four rows. An integer tile's columns have
/// each row twice: columns 0 to 3 get the codes of one scale and zeroes for others, columns 4 to 7
/// those of the next scale. So lanes 4 g + q have sums of the one for q < 2 and of the other
/// beyond, which they scale; of both together lane 4 g + q keeps matrix row g + 8 (q / 2) and rows
/// 2 (q % 2) and the next of the step.

#include "backend/gpu/kernels/row_tile.h"

namespace hearth::backend::gpu {

/// What a tile says of the lane's results.
struct FewProduct {
  i32 values[2];
  i32 offsets[2];
  u32 factors;  // halves: of values, of offsets
};

/// The row of codes that a lane brings to an integer tile.
DEVICE_FN u32 few_column(u32 lane, u32 n_rows) {
  return min_u32(lane / 4 % 4, n_rows - 1u);
}

/// As multiply_sums, of the lane's results alone.
DEVICE_FN void few_sums(u32 row0, u32 row8, SHARED(const u8) digits, bool is_signed, u32 lane,
                        THREAD(i32) results) {
  const u32 q = lane % 4;
  const u32x4 tile = {row0, row8, 0, 0};
  i32 low[4] = {0, 0, 0, 0};
  i32 high[4] = {0, 0, 0, 0};
  if (is_signed) {
    add_tile_product_i8(low, tile, words(digits)[q], 0, lane);
    add_tile_product_i8(high, tile, words(digits)[4 + q], 0, lane);
  } else {
    add_tile_product_u8(low, tile, words(digits)[q], 0, lane);
    add_tile_product_u8(high, tile, words(digits)[4 + q], 0, lane);
  }
  UNROLL for (u32 c = 0; c < 2; ++c) {
    results[c] = 64 * (q < 2u ? high[c] : high[2 + c]) + (q < 2u ? low[c] : low[2 + c]);
  }
}

/// format_few_multiply: `codes` and `digits` are those of few_column(). With has_next, each part of
/// the tile makes room for that of the tile at `next` as it has been used. Sums of odd runs are 16
/// times too large, those of fifth bits as many times as their place says.
#define K_FEW_MULTIPLY(format, has_fifth)                                                          \
  DEVICE_FN void format##_few_multiply(                                                            \
      THREAD_REF(StripTile) tile, bool has_next, DEVICE(const u8) next, SHARED(const u32) codes,   \
      SHARED(const u8) digits, u32 lane, THREAD_REF(FewProduct) product) {                         \
    const u32 q = lane % 4;                                                                        \
    const bool is_odd = q >= 2u;                                                                   \
    const bool brings_odd = lane >= 16u;                                                           \
    const SixBitScales scales[2] = {six_bit_scales(tile.heads[0]), six_bit_scales(tile.heads[1])}; \
    few_sums(lane_minima(scales[0], lane), lane_minima(scales[1], lane), digits, false, lane,      \
             product.offsets);                                                                     \
    product.factors = is_odd ? tile.heads[1].x : tile.heads[0].x;                                  \
    UNROLL for (u32 r = 0; r < 2; ++r) {                                                           \
      if (has_next) {                                                                              \
        load_head(next, r, lane, tile);                                                            \
      }                                                                                            \
    }                                                                                              \
    i32 totals[4] = {0, 0, 0, 0};                                                                  \
    i32 fifths[4] = {0, 0, 0, 0};                                                                  \
    UNROLL for (u32 i = 0; i < 4; ++i) {                                                           \
      const u32x2 x = load2(codes + (16 * i + 4 * q + (brings_odd ? 2u : 0u)));                    \
      const u32x2 even = words_if(!brings_odd, x);                                                 \
      const u32x2 odd = words_if(brings_odd, x);                                                   \
      const u32x4 even_codes = masked_words(tile.pieces[i], 0x0f0f0f0fu);                          \
      const u32x4 odd_codes = masked_words(tile.pieces[i], 0xf0f0f0f0u);                           \
      if (has_next) {                                                                              \
        load_piece(next, i, lane, tile);                                                           \
      }                                                                                            \
      i32 sums[4];                                                                                 \
      tile_product_u8(sums, even_codes, even.x, even.y, lane);                                     \
      add_tile_product_u8(sums, odd_codes, odd.x, odd.y, lane);                                    \
      i32 scale[2];                                                                                \
      UNROLL for (u32 r = 0; r < 2; ++r) {                                                         \
        scale[r] = unsigned_byte(scales[r].scales[i / 2] >> (is_odd ? 8 : 0), 2 * (i % 2));        \
      }                                                                                            \
      UNROLL for (u32 j = 0; j < 4; ++j) {                                                         \
        totals[j] += sums[j] * scale[j / 2];                                                       \
      }                                                                                            \
      if (has_fifth) {                                                                             \
        const u32x4 even_bits = masked_words(tile.bits[0], 0x01010101u << (2 * i));                \
        const u32x4 odd_bits = masked_words(tile.bits[0], 0x02020202u << (2 * i));                 \
        i32 bits[4];                                                                               \
        tile_product_u8(bits, even_bits, even.x, even.y, lane);                                    \
        add_tile_product_u8(bits, odd_bits, odd.x, odd.y, lane);                                   \
        UNROLL for (u32 j = 0; j < 4; ++j) {                                                       \
          fifths[j] = 4 * fifths[j] + bits[j] * scale[j / 2];                                      \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
    if (has_fifth && has_next) {                                                                   \
      load_bits(next, 0, lane, tile);                                                              \
    }                                                                                              \
    UNROLL for (u32 j = 0; j < 4; ++j) {                                                           \
      totals[j] >>= is_odd ? 4 : 0;                                                                \
      if (has_fifth) {                                                                             \
        totals[j] += (fifths[j] >> (is_odd ? 7 : 6)) * 16;                                         \
      }                                                                                            \
    }                                                                                              \
    UNROLL for (u32 c = 0; c < 2; ++c) {                                                           \
      product.values[c] = sum_of_pair(totals[c], totals[2 + c], is_odd, 2);                        \
    }                                                                                              \
  }

K_FEW_MULTIPLY(q4_k, false)
K_FEW_MULTIPLY(q5_k, true)

DEVICE_FN void q6_k_few_multiply(THREAD_REF(StripTile) tile, bool has_next, DEVICE(const u8) next,
                                 SHARED(const u32) codes, SHARED(const u8) digits, u32 lane,
                                 THREAD_REF(FewProduct) product) {
  const u32 q = lane % 4;
  const bool is_second = q >= 2u;
  const bool is_in_column = is_second == (lane >= 16u);  // either half of the 16 codes of a scale
  i32 less[2];                                           // codes are 32 less than what is stored
  few_sums(word_of(tile.heads[0], q), word_of(tile.heads[1], q), digits, true, lane, less);
  product.factors = is_second ? tile.factor[1] : tile.factor[0];
  i32 totals[4] = {0, 0, 0, 0};
  UNROLL for (u32 k = 0; k < 2; ++k) {
    UNROLL for (u32 j = 0; j < 4; ++j) {
      const u32 i = 4 * k + j;
      const u32x2 x = words_if(is_in_column, load2(codes + (16 * (i / 2) + 4 * q + 2 * (i % 2))));
      const u32x4 low = tile.pieces[2 * k + j % 2];
      const u32x4 high = tile.bits[k];
      const u32x4 tile_codes = {q6_k_codes(low.x, high.x, i), q6_k_codes(low.y, high.y, i),
                                q6_k_codes(low.z, high.z, i), q6_k_codes(low.w, high.w, i)};
      i32 sums[4];
      tile_product_u8(sums, tile_codes, x.x, x.y, lane);
      UNROLL for (u32 r = 0; r < 2; ++r) {
        const u32 four = word_of(tile.heads[r], i / 2) >> (is_second ? 8 : 0);
        UNROLL for (u32 c = 0; c < 2; ++c) {
          totals[2 * r + c] += sums[2 * r + c] * signed_byte_of(four, 2 * (i % 2));
        }
      }
    }
    if (has_next) {
      load_piece(next, 2 * k, lane, tile);
      load_piece(next, 2 * k + 1, lane, tile);
      load_bits(next, k, lane, tile);
    }
  }
  UNROLL for (u32 r = 0; r < 2; ++r) {
    if (has_next) {
      load_head(next, r, lane, tile);
      load_factor(next, r, lane, tile);
    }
  }
  UNROLL for (u32 c = 0; c < 2; ++c) {
    product.values[c] = sum_of_pair(totals[c], totals[2 + c], is_second, 2) - 32 * less[c];
    product.offsets[c] = 0;
  }
}

/// The lane's two results go on by what a tile says, with the scales of the block of codes.
DEVICE_FN void add_few_product(THREAD_REF(const FewProduct) product, bool has_offset,
                               THREAD(const f32) scales, THREAD(f32) results) {
  const f32 factor = to_f32(f16_of_bits(product.factors & 0xffffu));
  const f32 offset_factor = -to_f32(f16_of_bits(product.factors >> 16));
  UNROLL for (u32 c = 0; c < 2; ++c) {
    results[c] = fma_f32(factor * scales[c], f32(product.values[c]), results[c]);
    if (has_offset) {
      results[c] = fma_f32(offset_factor * scales[c], f32(product.offsets[c]), results[c]);
    }
  }
}

/// What a tile says, put aside: values and offsets of both results, then the factors.
DEVICE_FN void store_few_product(THREAD_REF(const FewProduct) product, u32 lane,
                                 SHARED(u32) terms) {
  UNROLL for (u32 c = 0; c < 2; ++c) {
    terms[64 * c + lane] = bits_of_f32(f32(product.values[c]));
    terms[64 * c + 32 + lane] = bits_of_f32(f32(product.offsets[c]));
  }
  terms[128 + lane] = product.factors;
}

#define ASIDE_STEPS 4  // tiles whose terms are read at once

/// The lane's result goes on by what was put aside of n tiles, at most ASIDE_STEPS: `said` begins
/// with its value, `factors` with its factors, `scales` with that of its row of codes.
DEVICE_FN f32 add_aside_lot(SHARED(const u32) said, SHARED(const u32) factors,
                            SHARED(const f32) scales, u32 n, bool has_offset, f32 result) {
  u32 value[ASIDE_STEPS];
  u32 offset[ASIDE_STEPS];
  u32 both[ASIDE_STEPS];
  f32 scale[ASIDE_STEPS];
  UNROLL for (u32 i = 0; i < ASIDE_STEPS; ++i) {
    if (i < n) {
      value[i] = said[i * FEW_TERMS];
      offset[i] = said[i * FEW_TERMS + 32];
      both[i] = factors[i * FEW_TERMS];
      scale[i] = scales[i * STRIP_FEW_ROWS];
    }
  }
  UNROLL for (u32 i = 0; i < ASIDE_STEPS; ++i) {
    if (i < n) {
      const f32 factor = to_f32(f16_of_bits(both[i] & 0xffffu));
      const f32 offset_factor = -to_f32(f16_of_bits(both[i] >> 16));
      result = fma_f32(factor * scale[i], f32_of_bits(value[i]), result);
      result =
          has_offset ? fma_f32(offset_factor * scale[i], f32_of_bits(offset[i]), result) : result;
    }
  }
  return result;
}

/// The lane's result c goes on by what was put aside of n tiles.
DEVICE_FN f32 add_aside(SHARED(const u32) aside, u32 n, bool has_offset, SHARED(const f32) scales,
                        u32 lane, u32 c, f32 before) {
  SHARED(const u32) said = aside + (64 * c + lane);
  SHARED(const u32) factors = aside + (128 + lane);
  f32 result = before;
  u32 tile = 0;
  KEEP_LOOP for (; tile + ASIDE_STEPS <= n; tile += ASIDE_STEPS) {
    result = add_aside_lot(said + tile * FEW_TERMS, factors + tile * FEW_TERMS,
                           scales + tile * STRIP_FEW_ROWS, ASIDE_STEPS, has_offset, result);
  }
  KEEP_LOOP for (; tile < n; ++tile) {
    result = add_aside_lot(said + tile * FEW_TERMS, factors + tile * FEW_TERMS,
                           scales + tile * STRIP_FEW_ROWS, 1, has_offset, result);
  }
  return result;
}

}  // namespace hearth::backend::gpu
