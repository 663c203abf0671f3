#pragma once
/// Tiles of a matrix (kernels/weight_tiles.h), which a simdgroup holds in registers as they are
/// stored, and multiplies with blocks of up to eight rows of codes by integer tiles
/// (dialect/dialect.h). Any order of k gives the same exact sums, so lane 4 g + q takes of rows g
/// and g + 8 the bytes 8 q ... 8 q + 7 of each run of 32.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/strips.h"
#include "backend/gpu/kernels/weight_tiles.h"

namespace hearth::backend::gpu {

// Blocks of codes in shared memory: words 2 q and 2 q + 1 of both halves of 64 values lie together.
// After the blocks of a row a gap, so that rows meet different banks.
#define STRIP_ROW_GAP 16

/// The lane's share.
struct StripTile {
  u32x4 heads[2];   // of rows g and g + 8: Q4_K and Q5_K also have both factors of the block there
  u32x4 pieces[4];  // four bits of each code, in the order of an integer tile's words
  u32x4 bits[2];    // more bits
  u32 factor[2];    // of the block, where it is not in `heads`
};

/// What a tile says of rows g and g + 8 and columns 2 q and 2 q + 1, in the order of sums of a
/// tile.
struct StripProduct {
  i32 values[4];
  i32 offsets[4];
  f32 factors[2];         // of values, for each row
  f32 offset_factors[2];  // of offsets
};

/// The lane's share of a block of codes: of the column that is its own. Columns beyond the rows
/// that there are may have any codes, since nobody looks at what comes of them.
struct StripCodes {
  u32 lane;
  u32 low_digits;
  u32 high_digits;
};

DEVICE_FN StripCodes strip_codes(SHARED(const u8) digits, u32 lane) {
  const StripCodes codes = {lane, words(digits)[lane % 4], words(digits)[4 + lane % 4]};
  return codes;
}

/// The lane's pairs of runs of 32 codes: words 2 q and 2 q + 1 of one, then of the other.
#define STRIP_PAIRS 4
DEVICE_FN void load_pairs(SHARED(const u32) x, u32 lane, THREAD(u32x4) pairs) {
  UNROLL for (u32 i = 0; i < STRIP_PAIRS; ++i) {
    pairs[i] = load4(x + (16 * i + 4 * (lane % 4)));
  }
}

DEVICE_FN i32 unsigned_byte(u32 word, u32 i) {
  return i32((word >> (8u * i)) & 255u);
}
DEVICE_FN i32 signed_byte_of(u32 word, u32 i) {
  return i32(word << (24u - 8u * i)) >> 24;
}

/// The sum over k of a byte for each 16 codes times their sum: `row0` and `row8` are the lane's
/// four bytes, unsigned or signed.
DEVICE_FN void multiply_sums(u32 row0, u32 row8, THREAD_REF(const StripCodes) codes, bool is_signed,
                             THREAD(i32) results) {
  i32 low[4] = {0, 0, 0, 0};
  i32 high[4] = {0, 0, 0, 0};
  const u32x4 tile = {row0, row8, 0, 0};
  if (is_signed) {
    add_tile_product_i8(low, tile, codes.low_digits, 0, codes.lane);
    add_tile_product_i8(high, tile, codes.high_digits, 0, codes.lane);
  } else {
    add_tile_product_u8(low, tile, codes.low_digits, 0, codes.lane);
    add_tile_product_u8(high, tile, codes.high_digits, 0, codes.lane);
  }
  UNROLL for (u32 i = 0; i < 4; ++i) {
    results[i] = 64 * high[i] + low[i];
  }
}

/// Pieces i of the lower bits and of the others, what row g + 8 r begins with, and its factor.
DEVICE_FN void load_piece(DEVICE(const u8) tile, u32 i, u32 lane, THREAD_REF(StripTile) to) {
  to.pieces[i] =
      load4_once(words(tile) + ((TILE_HEAD_BYTES + i * TILE_PIECE_BYTES) / 4 + 4 * lane));
}
DEVICE_FN void load_bits(DEVICE(const u8) tile, u32 i, u32 lane, THREAD_REF(StripTile) to) {
  to.bits[i] =
      load4_once(words(tile) + ((TILE_HEAD_BYTES + (4 + i) * TILE_PIECE_BYTES) / 4 + 4 * lane));
}
DEVICE_FN void load_head(DEVICE(const u8) tile, u32 r, u32 lane, THREAD_REF(StripTile) to) {
  to.heads[r] = load4(words(tile) + 4 * (lane / 4 + 8 * r));
}
DEVICE_FN void load_factor(DEVICE(const u8) tile, u32 r, u32 lane, THREAD_REF(StripTile) to) {
  to.factor[r] = halfwords(tile)[(TILE_HEAD_BYTES + 6 * TILE_PIECE_BYTES) / 2 + lane / 4 + 8 * r];
}

/// format_tile_load: the lane's share of a tile.
DEVICE_FN void q4_k_tile_load(DEVICE(const u8) tile, u32 lane, THREAD_REF(StripTile) to) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    load_piece(tile, i, lane, to);
  }
  UNROLL for (u32 r = 0; r < 2; ++r) {
    load_head(tile, r, lane, to);
  }
}

DEVICE_FN void q5_k_tile_load(DEVICE(const u8) tile, u32 lane, THREAD_REF(StripTile) to) {
  q4_k_tile_load(tile, lane, to);
  load_bits(tile, 0, lane, to);
}

DEVICE_FN void q6_k_tile_load(DEVICE(const u8) tile, u32 lane, THREAD_REF(StripTile) to) {
  q4_k_tile_load(tile, lane, to);
  UNROLL for (u32 i = 0; i < 2; ++i) {
    load_bits(tile, i, lane, to);
    load_factor(tile, i, lane, to);
  }
}

// Q4_K and Q5_K (quant/types/k_scales.h): eight scales and eight minima of six bits.

struct SixBitScales {
  u32 scales[2];  // four bytes each
  u32 minima[2];
};

DEVICE_FN SixBitScales six_bit_scales(u32x4 head) {
  SixBitScales result;
  result.scales[0] = head.y & 0x3f3f3f3fu;
  result.scales[1] = (head.w & 0x0f0f0f0fu) | ((head.y >> 2) & 0x30303030u);
  result.minima[0] = head.z & 0x3f3f3f3fu;
  result.minima[1] = ((head.w >> 4) & 0x0f0f0f0fu) | ((head.z >> 2) & 0x30303030u);
  return result;
}

/// Minima 2 q and 2 q + 1, each for two runs of 16 codes.
DEVICE_FN u32 lane_minima(THREAD_REF(const SixBitScales) scales, u32 lane) {
  const u32 four = lane % 4 < 2u ? scales.minima[0] : scales.minima[1];
  return pick_bytes(four, 0, lane % 2 == 0u ? 0x1100u : 0x3322u);
}

DEVICE_FN void set_k_factors(THREAD_REF(const StripTile) tile, THREAD_REF(StripProduct) product) {
  UNROLL for (u32 r = 0; r < 2; ++r) {
    product.factors[r] = to_f32(f16_of_bits(tile.heads[r].x & 0xffffu));
    product.offset_factors[r] = -to_f32(f16_of_bits(tile.heads[r].x >> 16));
  }
}

/// Codes of run 2 i of 32, and of run 2 i + 1, whose products are that many times too large.
DEVICE_FN u32 q4_k_even(u32 low, u32, u32) {
  return low & 0x0f0f0f0fu;
}
DEVICE_FN u32 q4_k_odd(u32 low, u32, u32) {
  return low & 0xf0f0f0f0u;
}
#define q4_k_odd_shift 4
DEVICE_FN u32 q5_k_even(u32 low, u32 high, u32 i) {
  return (low & 0x0f0f0f0fu) | (((high >> (2 * i)) & 0x01010101u) << 4);
}
DEVICE_FN u32 q5_k_odd(u32 low, u32 high, u32 i) {
  return ((low >> 4) & 0x0f0f0f0fu) | (((high >> (2 * i + 1)) & 0x01010101u) << 4);
}
#define q5_k_odd_shift 0

#define K_RUN(format, parity, i)                           \
  {format##_##parity(tile.pieces[i].x, tile.bits[0].x, i), \
   format##_##parity(tile.pieces[i].y, tile.bits[0].y, i), \
   format##_##parity(tile.pieces[i].z, tile.bits[0].z, i), \
   format##_##parity(tile.pieces[i].w, tile.bits[0].w, i)}

#define K_TILE_MULTIPLY(format)                                                                    \
  DEVICE_FN void format##_tile_multiply(                                                           \
      THREAD_REF(const StripTile) tile, THREAD(const u32x4) pairs,                                 \
      THREAD_REF(const StripCodes) codes, THREAD_REF(StripProduct) product) {                      \
    const SixBitScales scales[2] = {six_bit_scales(tile.heads[0]), six_bit_scales(tile.heads[1])}; \
    multiply_sums(lane_minima(scales[0], codes.lane), lane_minima(scales[1], codes.lane), codes,   \
                  false, product.offsets);                                                         \
    i32 evens[4] = {0, 0, 0, 0};                                                                   \
    i32 odds[4] = {0, 0, 0, 0};                                                                    \
    UNROLL for (u32 i = 0; i < 4; ++i) {                                                           \
      const u32x4 pair = pairs[i];                                                                 \
      i32 even[4] = {0, 0, 0, 0};                                                                  \
      i32 odd[4] = {0, 0, 0, 0};                                                                   \
      const u32x4 even_codes = K_RUN(format, even, i);                                             \
      const u32x4 odd_codes = K_RUN(format, odd, i);                                               \
      add_tile_product_u8(even, even_codes, pair.x, pair.y, codes.lane);                           \
      add_tile_product_u8(odd, odd_codes, pair.z, pair.w, codes.lane);                             \
      UNROLL for (u32 j = 0; j < 4; ++j) {                                                         \
        const u32 four = scales[j / 2].scales[i / 2];                                              \
        evens[j] += even[j] * unsigned_byte(four, 2 * (i % 2));                                    \
        odds[j] += odd[j] * unsigned_byte(four, 2 * (i % 2) + 1);                                  \
      }                                                                                            \
    }                                                                                              \
    UNROLL for (u32 j = 0; j < 4; ++j) {                                                           \
      product.values[j] = evens[j] + (odds[j] >> format##_odd_shift);                              \
    }                                                                                              \
    set_k_factors(tile, product);                                                                  \
  }

K_TILE_MULTIPLY(q4_k)
K_TILE_MULTIPLY(q5_k)

// Q6_K: sixteen scales of eight bits.

/// Codes of run i of 32.
DEVICE_FN u32 q6_k_codes(u32 low, u32 high, u32 i) {
  return ((low >> (4 * (i % 4 / 2))) & 0x0f0f0f0fu) |
         (((high >> (2 * (i % 4))) & 0x03030303u) << 4);
}

DEVICE_FN u32 word_of(u32x4 four, u32 i) {
  return i < 2u ? (i == 0u ? four.x : four.y) : (i == 2u ? four.z : four.w);
}

DEVICE_FN void q6_k_tile_multiply(THREAD_REF(const StripTile) tile, THREAD(const u32x4) pairs,
                                  THREAD_REF(const StripCodes) codes,
                                  THREAD_REF(StripProduct) product) {
  const u32 q = codes.lane % 4;
  const u32 scales[2][4] = {{tile.heads[0].x, tile.heads[0].y, tile.heads[0].z, tile.heads[0].w},
                            {tile.heads[1].x, tile.heads[1].y, tile.heads[1].z, tile.heads[1].w}};
  // Codes are 32 less than what is stored.
  i32 less[4];
  multiply_sums(word_of(tile.heads[0], q), word_of(tile.heads[1], q), codes, true, less);
  UNROLL for (u32 j = 0; j < 4; ++j) {
    product.values[j] = -32 * less[j];
    product.offsets[j] = 0;
  }
  UNROLL for (u32 i = 0; i < 8; ++i) {
    const u32x4 pair = pairs[i / 2];
    const u32 b_low = i % 2 == 0u ? pair.x : pair.z;
    const u32 b_high = i % 2 == 0u ? pair.y : pair.w;
    const u32x4 low = tile.pieces[2 * (i / 4) + i % 2];
    const u32x4 high = tile.bits[i / 4];
    const u32x4 tile_codes = {q6_k_codes(low.x, high.x, i), q6_k_codes(low.y, high.y, i),
                              q6_k_codes(low.z, high.z, i), q6_k_codes(low.w, high.w, i)};
    // Lanes of either half of the 16 codes that share a scale.
    i32 first[4] = {0, 0, 0, 0};
    i32 second[4] = {0, 0, 0, 0};
    add_tile_product_u8(first, tile_codes, q < 2u ? b_low : 0u, q < 2u ? b_high : 0u, codes.lane);
    add_tile_product_u8(second, tile_codes, q < 2u ? 0u : b_low, q < 2u ? 0u : b_high, codes.lane);
    UNROLL for (u32 j = 0; j < 4; ++j) {
      const u32 four = scales[j / 2][i / 2];
      product.values[j] += first[j] * signed_byte_of(four, 2 * (i % 2));
      product.values[j] += second[j] * signed_byte_of(four, 2 * (i % 2) + 1);
    }
  }
  UNROLL for (u32 r = 0; r < 2; ++r) {
    product.factors[r] = to_f32(f16_of_bits(tile.factor[r]));
    product.offset_factors[r] = 0.0f;
  }
}

// By StripParams::type.

DEVICE_FN u32 strip_block_bytes(u32 type) {
  return type == STRIP_Q4_K ? 144u : (type == STRIP_Q5_K ? 176u : 210u);
}

DEVICE_FN u32 strip_tile_bytes(u32 type) {
  if (STRIP_IS_SMALL(type)) {
    return TILE_ROWS * 8u * (type == STRIP_Q8_0 ? 34u : (type == STRIP_MXFP4 ? 17u : 18u));
  }
  return TILE_ROWS * strip_block_bytes(type);
}

DEVICE_FN void tile_load(u32 type, DEVICE(const u8) tile, u32 lane, THREAD_REF(StripTile) to) {
  if (type == STRIP_Q4_K) {
    q4_k_tile_load(tile, lane, to);
  } else if (type == STRIP_Q5_K) {
    q5_k_tile_load(tile, lane, to);
  } else {
    q6_k_tile_load(tile, lane, to);
  }
}

}  // namespace hearth::backend::gpu
