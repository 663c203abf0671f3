#pragma once
/// Where what a block says lies in its tile (kernels/weight_tiles.h).

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/weight_tiles.h"

namespace hearth::backend::gpu {

/// Where a block has the 16 bytes that a tile begins with.
DEVICE_FN u32 tile_head(u32 block_bytes) {
  return block_bytes == 210u ? 192u : 0u;
}

/// The piece that byte `at` of a block is in, which is neither in the head nor in the factor.
DEVICE_FN u32 tile_piece(u32 block_bytes, u32 at) {
  if (block_bytes == 144u) {
    return (at - 16) / 32;
  }
  if (block_bytes == 210u) {
    return at / 32;
  }
  return at < 48u ? 4u : (at - 48) / 32;  // fifth bits are in front
}

// Blocks of MXFP4 are of an odd number of bytes, and their tiles of other halfwords than the file.

#define IS_ODD_BLOCK(block_bytes) ((block_bytes) % 2 != 0u)
#define ODD_ROW_HALVES 68

/// Halfword of the tile at which one of row `row` lies: 0 - 3 are exponents of two blocks, then
/// come eight of codes for each block.
DEVICE_FN u32 odd_tile_halfword(u32 row, u32 i) {
  if (i < 4u) {
    return 4 * row + i;
  }
  const u32 block = (i - 4) / 8;
  const u32 word = (i - 4) % 8 / 2;
  return (ODD_HEAD_BYTES + block / 2 * TILE_PIECE_BYTES) / 2 + 8 * (4 * (row % 8) + word) +
         2 * (row / 8 + 2 * (block % 2)) + i % 2;
}

/// Bytes of the row's blocks in the file that its halfword i has.
struct OddBytes {
  u32 low;
  u32 high;
};

DEVICE_FN OddBytes odd_bytes(u32 i) {
  const u32 block = (i - 4) / 8;
  const u32 first = i < 4u ? 34 * i : 17 * block + 1 + 2 * ((i - 4) % 8);
  const OddBytes bytes = {first, i < 4u ? first + 17 : first + 1};
  return bytes;
}

/// Byte of the tile at which byte `at` of the row's blocks in the file lies.
DEVICE_FN u32 odd_tile_byte(u32 row, u32 at) {
  const u32 block = at / 17;
  const u32 in_block = at - 17 * block;
  if (in_block == 0u) {
    return 8 * row + block;
  }
  return 2 * odd_tile_halfword(row, 4 + 8 * block + (in_block - 1) / 2) + (in_block - 1) % 2;
}

/// Halfword of the tile at which halfword `i` of row `row` lies: of a scale and words of codes,
/// eight times.
DEVICE_FN u32 small_tile_halfword(u32 block_bytes, u32 row, u32 i) {
  const u32 block = 2 * i / block_bytes;
  const u32 in_block = i - block * block_bytes / 2;
  if (in_block == 0u) {
    return 8 * row + block;
  }
  // Words q and q + 4 of a block of Q8_0 lie together, otherwise word q of two blocks.
  const u32 word = (in_block - 1) / 2;
  const bool is_byte = block_bytes == 34u;
  const u32 piece = is_byte ? block : block / 2;
  const u32 second = is_byte ? word / 4 : block % 2;
  return (TILE_HEAD_BYTES + piece * TILE_PIECE_BYTES) / 2 + 8 * (4 * (row % 8) + word % 4) +
         2 * (row / 8 + 2 * second) + (in_block - 1) % 2;
}

/// The same for any type.
DEVICE_FN u32 tile_halfword(u32 block_bytes, u32 row, u32 i) {
  if (TILE_BLOCKS(block_bytes) != 1u) {
    return small_tile_halfword(block_bytes, row, i);
  }
  const u32 at = 2 * i;
  const u32 head = tile_head(block_bytes);
  if (at >= head && at < head + 16) {
    return 8 * row + (at - head) / 2;
  }
  if (at == 208u && block_bytes == 210u) {
    return (TILE_HEAD_BYTES + 6 * TILE_PIECE_BYTES) / 2 + row;
  }
  const u32 in_run = at % 16 + (at / 16 + (block_bytes == 210u ? 0u : 1u)) % 2 * 16;
  const u32 word = in_run / 4;
  const u32 lane = 4 * (row % 8) + word / 2;
  return (TILE_HEAD_BYTES + tile_piece(block_bytes, at) * TILE_PIECE_BYTES) / 2 + 8 * lane +
         2 * (row / 8 + 2 * (word % 2)) + i % 2;
}

}  // namespace hearth::backend::gpu
