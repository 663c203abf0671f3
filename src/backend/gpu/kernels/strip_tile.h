#pragma once
/// Tiles of a matrix (kernels/weight_tiles.h), which a simdgroup holds in registers as they are
/// stored, and multiplies with blocks of up to eight rows of codes by integer tiles
/// (dialect/dialect.h). Any order of k gives the same exact sums, so lane 4 g + q takes of rows g
/// and g + 8 the bytes 8 q ... 8 q + 7 of each run of 32.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/strips.h"
#include "backend/gpu/kernels/weight_tiles.h"

namespace hearth::backend::gpu {

/// The lane's share.
struct StripTile {
  u32x4 heads[2];   // of rows g and g + 8: Q4_K and Q5_K also have both factors of the block there
  u32x4 pieces[4];  // four bits of each code, in the order of an integer tile's words
  u32x4 bits[2];    // more bits
  u32 factor[2];    // of the block, where it is not in `heads`
};

/// The lane's share of a block of codes: of the column that is its own. Columns beyond the rows
/// that there are may have any codes, since nobody looks at what comes of them.
struct StripCodes {
  u32 lane;
  u32 low_digits;
  u32 high_digits;
};

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
  to.pieces[i] = load4(words(tile) + ((TILE_HEAD_BYTES + i * TILE_PIECE_BYTES) / 4 + 4 * lane));
}
DEVICE_FN void load_bits(DEVICE(const u8) tile, u32 i, u32 lane, THREAD_REF(StripTile) to) {
  to.bits[i] = load4(words(tile) + ((TILE_HEAD_BYTES + (4 + i) * TILE_PIECE_BYTES) / 4 + 4 * lane));
}
DEVICE_FN void load_head(DEVICE(const u8) tile, u32 r, u32 lane, THREAD_REF(StripTile) to) {
  to.heads[r] = load4(words(tile) + 4 * (lane / 4 + 8 * r));
}
DEVICE_FN void load_factor(DEVICE(const u8) tile, u32 r, u32 lane, THREAD_REF(StripTile) to) {
  to.factor[r] = halfwords(tile)[(TILE_HEAD_BYTES + 6 * TILE_PIECE_BYTES) / 2 + lane / 4 + 8 * r];
}

/// The same of what only one simdgroup reads.
DEVICE_FN void load_piece_once(DEVICE(const u8) tile, u32 i, u32 lane, THREAD_REF(StripTile) to) {
  to.pieces[i] =
      load4_once(words(tile) + ((TILE_HEAD_BYTES + i * TILE_PIECE_BYTES) / 4 + 4 * lane));
}
DEVICE_FN void load_bits_once(DEVICE(const u8) tile, u32 i, u32 lane, THREAD_REF(StripTile) to) {
  to.bits[i] =
      load4_once(words(tile) + ((TILE_HEAD_BYTES + (4 + i) * TILE_PIECE_BYTES) / 4 + 4 * lane));
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

// Q6_K: sixteen scales of eight bits.

/// Codes of run i of 32.
DEVICE_FN u32 q6_k_codes(u32 low, u32 high, u32 i) {
  return ((low >> (4 * (i % 4 / 2))) & 0x0f0f0f0fu) |
         (((high >> (2 * (i % 4))) & 0x03030303u) << 4);
}

DEVICE_FN u32 word_of(u32x4 four, u32 i) {
  return i < 2u ? (i == 0u ? four.x : four.y) : (i == 2u ? four.z : four.w);
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
