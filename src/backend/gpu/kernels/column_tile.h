#pragma once
/// Tiles of a matrix (kernels/strip_tile.h) times up to COLUMN_MAX_GROUPS times eight columns of
/// codes in device memory, whose results a simdgroup keeps in registers.

#include "backend/gpu/kernels/columns.h"
#include "backend/gpu/kernels/strip_tile.h"

namespace hearth::backend::gpu {

#define COLUMN_RESULTS (4 * COLUMN_MAX_GROUPS)  // of a lane, in the order of sums of tiles
#define COLUMN_TILES_AHEAD 4  // beside the one that is loaded, on their way to the cache

/// A lane's columns, each as the number of the first block of its row.
struct ColumnInput {
  u32 own[COLUMN_MAX_GROUPS];       // column g of each eight
  u32 both[2 * COLUMN_MAX_GROUPS];  // columns 2 q and 2 q + 1, whose results the lane has
};

/// The lane's words of runs 2 i and 2 i + 1 of a block.
DEVICE_FN u32x4 load_column_pair(DEVICE(const u32) codes, u32 block, u32 lane, u32 i) {
  return load4(codes + (u64(block) * STRIP_BLOCK_WORDS + 16 * i + 4 * (lane % 4)));
}

DEVICE_FN i32 picked_byte(u32 word, u32 i) {
  return i32(pick_bytes(word, 0, 0x4440u + i));
}

/// The lane's four sums of 16 codes.
DEVICE_FN StripCodes column_digits(DEVICE(const u32) digits, u32 block, u32 lane) {
  const u32x2 both = load2(digits + (STRIP_DIGIT_BYTES / 4 * block + 2 * (lane % 4)));
  const StripCodes codes = {lane, both.x, both.y};
  return codes;
}

/// What a block says of results: exact sums, in the order of sums of tiles, and for each of the
/// lane's rows what they are multiplied by, beside the scale of the column's codes.
struct ColumnTerms {
  i32 values[COLUMN_RESULTS];
  i32 offsets[COLUMN_RESULTS];  // of types that have them
  f32 factors[2];
  f32 offset_factors[2];
};

// format_column_terms_N: of N groups of columns and a block of theirs. Each part of the tile makes
// room for that of the tile at `next` as it has been used.

// Q4_K and Q5_K.

#define K_COLUMN_TERMS(format, n, has_fifth)                                                    \
  DEVICE_FN void format##_column_terms_##n(THREAD_REF(StripTile) tile, DEVICE(const u8) next,   \
                                           DEVICE(const u32) codes, DEVICE(const u32) digits,   \
                                           THREAD_REF(const ColumnInput) input, u32 block,      \
                                           u32 lane, THREAD_REF(ColumnTerms) terms) {           \
    const SixBitScales six[2] = {six_bit_scales(tile.heads[0]), six_bit_scales(tile.heads[1])}; \
    i32 evens[4 * n];                                                                           \
    i32 odds[4 * n];                                                                            \
    UNROLL for (u32 i = 0; i < 4 * n; ++i) {                                                    \
      evens[i] = 0;                                                                             \
      odds[i] = 0;                                                                              \
    }                                                                                           \
    UNROLL for (u32 i = 0; i < 4; ++i) {                                                        \
      const u32x4 even_codes = K_RUN(format, even, i);                                          \
      const u32x4 odd_codes = K_RUN(format, odd, i);                                            \
      load_piece(next, i, lane, tile);                                                          \
      i32 even_scales[2];                                                                       \
      i32 odd_scales[2];                                                                        \
      UNROLL for (u32 r = 0; r < 2; ++r) {                                                      \
        even_scales[r] = picked_byte(six[r].scales[i / 2], 2 * (i % 2));                        \
        odd_scales[r] = picked_byte(six[r].scales[i / 2], 2 * (i % 2) + 1);                     \
      }                                                                                         \
      UNROLL for (u32 c = 0; c < n; ++c) {                                                      \
        const u32x4 pair = load_column_pair(codes, input.own[c] + block, lane, i);              \
        i32 even[4];                                                                            \
        i32 odd[4];                                                                             \
        tile_product_u8(even, even_codes, pair.x, pair.y, lane);                                \
        tile_product_u8(odd, odd_codes, pair.z, pair.w, lane);                                  \
        UNROLL for (u32 j = 0; j < 4; ++j) {                                                    \
          evens[4 * c + j] += even[j] * even_scales[j / 2];                                     \
          odds[4 * c + j] += odd[j] * odd_scales[j / 2];                                        \
        }                                                                                       \
      }                                                                                         \
    }                                                                                           \
    const u32 minima[2] = {lane_minima(six[0], lane), lane_minima(six[1], lane)};               \
    UNROLL for (u32 r = 0; r < 2; ++r) {                                                        \
      terms.factors[r] = to_f32(f16_of_bits(tile.heads[r].x & 0xffffu));                        \
      terms.offset_factors[r] = -to_f32(f16_of_bits(tile.heads[r].x >> 16));                    \
      load_head(next, r, lane, tile);                                                           \
    }                                                                                           \
    if (has_fifth) {                                                                            \
      load_bits(next, 0, lane, tile);                                                           \
    }                                                                                           \
    UNROLL for (u32 c = 0; c < n; ++c) {                                                        \
      const StripCodes mine = column_digits(digits, input.own[c] + block, lane);                \
      multiply_sums(minima[0], minima[1], mine, false, terms.offsets + 4 * c);                  \
      UNROLL for (u32 j = 4 * c; j < 4 * c + 4; ++j) {                                          \
        terms.values[j] = evens[j] + (odds[j] >> format##_odd_shift);                           \
      }                                                                                         \
    }                                                                                           \
  }

K_COLUMN_TERMS(q4_k, 1, false)
K_COLUMN_TERMS(q4_k, 2, false)
K_COLUMN_TERMS(q5_k, 1, true)
K_COLUMN_TERMS(q5_k, 2, true)

// Q6_K.

#define K6_COLUMN_TERMS(n)                                                                       \
  DEVICE_FN void q6_k_column_terms_##n(THREAD_REF(StripTile) tile, DEVICE(const u8) next,        \
                                       DEVICE(const u32) codes, DEVICE(const u32) digits,        \
                                       THREAD_REF(const ColumnInput) input, u32 block, u32 lane, \
                                       THREAD_REF(ColumnTerms) terms) {                          \
    const u32 q = lane % 4;                                                                      \
    UNROLL for (u32 c = 0; c < n; ++c) {                                                         \
      /* Codes are 32 less than what is stored. */                                               \
      i32 less[4];                                                                               \
      const StripCodes mine = column_digits(digits, input.own[c] + block, lane);                 \
      multiply_sums(word_of(tile.heads[0], q), word_of(tile.heads[1], q), mine, true, less);     \
      UNROLL for (u32 j = 0; j < 4; ++j) {                                                       \
        terms.values[4 * c + j] = -32 * less[j];                                                 \
      }                                                                                          \
    }                                                                                            \
    UNROLL for (u32 pair = 0; pair < 4; ++pair) {                                                \
      UNROLL for (u32 odd = 0; odd < 2; ++odd) {                                                 \
        const u32 i = 2 * pair + odd;                                                            \
        const u32x4 low = tile.pieces[2 * (i / 4) + odd];                                        \
        const u32x4 high = tile.bits[i / 4];                                                     \
        const u32x4 run_codes = {q6_k_codes(low.x, high.x, i), q6_k_codes(low.y, high.y, i),     \
                                 q6_k_codes(low.z, high.z, i), q6_k_codes(low.w, high.w, i)};    \
        if (pair % 2 != 0u) {                                                                    \
          load_piece(next, 2 * (i / 4) + odd, lane, tile);                                       \
        }                                                                                        \
        if (i % 4 == 3u) {                                                                       \
          load_bits(next, i / 4, lane, tile);                                                    \
        }                                                                                        \
        i32 factors[2][2];                                                                       \
        UNROLL for (u32 r = 0; r < 2; ++r) {                                                     \
          UNROLL for (u32 h = 0; h < 2; ++h) {                                                   \
            factors[r][h] = signed_byte_of(word_of(tile.heads[r], i / 2), 2 * odd + h);          \
          }                                                                                      \
        }                                                                                        \
        UNROLL for (u32 c = 0; c < n; ++c) {                                                     \
          const u32x4 both = load_column_pair(codes, input.own[c] + block, lane, pair);          \
          const u32 b_low = odd == 0u ? both.x : both.z;                                         \
          const u32 b_high = odd == 0u ? both.y : both.w;                                        \
          /* Lanes of either half of the 16 codes that share a scale. */                         \
          i32 first[4];                                                                          \
          i32 second[4];                                                                         \
          tile_product_u8(first, run_codes, q < 2u ? b_low : 0u, q < 2u ? b_high : 0u, lane);    \
          tile_product_u8(second, run_codes, q < 2u ? 0u : b_low, q < 2u ? 0u : b_high, lane);   \
          UNROLL for (u32 j = 0; j < 4; ++j) {                                                   \
            terms.values[4 * c + j] += first[j] * factors[j / 2][0];                             \
            terms.values[4 * c + j] += second[j] * factors[j / 2][1];                            \
          }                                                                                      \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
    UNROLL for (u32 r = 0; r < 2; ++r) {                                                         \
      terms.factors[r] = to_f32(f16_of_bits(tile.factor[r]));                                    \
      load_head(next, r, lane, tile);                                                            \
      load_factor(next, r, lane, tile);                                                          \
    }                                                                                            \
  }

K6_COLUMN_TERMS(1)
K6_COLUMN_TERMS(2)

/// The next links of the chains of results.
DEVICE_FN void add_column_links(THREAD(const f32) factors, THREAD(const i32) values,
                                DEVICE(const f32) scales, THREAD(const u32) both, u32 block,
                                THREAD(f32) results) {
  UNROLL for (u32 j = 0; j < 4; ++j) {
    results[j] = fma_f32(factors[j / 2] * scales[both[j % 2] + block], f32(values[j]), results[j]);
  }
}

#define ADD_COLUMNS(format, n, has_offsets)                                                       \
  DEVICE_FN void format##_columns_##n(                                                            \
      THREAD_REF(StripTile) tile, DEVICE(const u8) next, DEVICE(const u32) codes,                 \
      DEVICE(const u32) digits, DEVICE(const f32) scales, THREAD_REF(const ColumnInput) input,    \
      u32 block, u32 lane, THREAD(f32) results) {                                                 \
    ColumnTerms terms;                                                                            \
    format##_column_terms_##n(tile, next, codes, digits, input, block, lane, terms);              \
    UNROLL for (u32 c = 0; c < n; ++c) {                                                          \
      add_column_links(terms.factors, terms.values + 4 * c, scales, input.both + 2 * c, block,    \
                       results + 4 * c);                                                          \
      if (has_offsets) {                                                                          \
        add_column_links(terms.offset_factors, terms.offsets + 4 * c, scales, input.both + 2 * c, \
                         block, results + 4 * c);                                                 \
      }                                                                                           \
    }                                                                                             \
  }

ADD_COLUMNS(q4_k, 1, true)
ADD_COLUMNS(q4_k, 2, true)
ADD_COLUMNS(q5_k, 1, true)
ADD_COLUMNS(q5_k, 2, true)
ADD_COLUMNS(q6_k, 1, false)
ADD_COLUMNS(q6_k, 2, false)

/// format_column_strip: the strip that begins at `tiles`, whose first tile is in `tile`, times the
/// first n_groups of the lane's groups of columns. Leaves in `tile` the one at `next`; so many
/// tiles lie from `tiles` on that the simdgroup will read one after the other.
#define COLUMN_STRIP(format, type)                                                             \
  DEVICE_FN void format##_column_strip(                                                        \
      DEVICE(const u8) tiles, DEVICE(const u8) next, u32 n_tiles, u32 n_blocks,                \
      DEVICE(const u32) codes, DEVICE(const u32) digits, DEVICE(const f32) scales,             \
      THREAD_REF(const ColumnInput) input, u32 n_groups, u32 lane, THREAD_REF(StripTile) tile, \
      THREAD(f32) results) {                                                                   \
    const u32 bytes = strip_tile_bytes(type);                                                  \
    UNROLL for (u32 i = 0; i < COLUMN_RESULTS; ++i) {                                          \
      results[i] = 0.0f;                                                                       \
    }                                                                                          \
    for (u32 block = 0; block < n_blocks; ++block) {                                           \
      const u32 ahead = block + 1 + COLUMN_TILES_AHEAD;                                        \
      if (ahead < n_tiles && 128 * lane < bytes) {                                             \
        prefetch(tiles + (ahead * bytes + 128 * lane));                                        \
      }                                                                                        \
      DEVICE(const u8) then = block + 1 < n_blocks ? tiles + (block + 1) * bytes : next;       \
      if (n_groups == 1u) {                                                                    \
        format##_columns_1(tile, then, codes, digits, scales, input, block, lane, results);    \
      } else {                                                                                 \
        format##_columns_2(tile, then, codes, digits, scales, input, block, lane, results);    \
      }                                                                                        \
    }                                                                                          \
  }

COLUMN_STRIP(q4_k, STRIP_Q4_K)
COLUMN_STRIP(q5_k, STRIP_Q5_K)
COLUMN_STRIP(q6_k, STRIP_Q6_K)

}  // namespace hearth::backend::gpu
