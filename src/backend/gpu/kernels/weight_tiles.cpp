// A threadgroup per tile, whose threads take halfwords: the blocks of Q6_K begin at even bytes.
// Bound by memory.

#include "backend/gpu/kernels/weight_tiles.h"

#include "backend/gpu/kernels/tile_places.h"

namespace hearth::backend::gpu {

KERNEL(tile_weights, TILE_WEIGHTS_THREADS, TileWeightsParams, BUFFER(0, const u16, from),
       BUFFER(1, u16, to)) {
  const u32 row_halves = TILE_BLOCKS(p.block_bytes) * p.block_bytes / 2;
  const u32 matrix_strips = (p.n_rows + TILE_ROWS - 1u) / TILE_ROWS;
  const u32 matrix = k_group.y / matrix_strips;
  const u32 first_row = (k_group.y - matrix * matrix_strips) * TILE_ROWS;
  const u64 tile = (u64(k_group.y) * p.n_tiles + k_group.x) * TILE_ROWS * row_halves;
  for (u32 at = k_thread.x; at < TILE_ROWS * row_halves; at += TILE_WEIGHTS_THREADS) {
    const u32 row = at / row_halves;
    const u32 i = at - row * row_halves;
    const u64 source = u64(matrix) * p.n_rows + min_u32(first_row + row, p.n_rows - 1u);
    const u64 blocks = (source * p.n_tiles + k_group.x) * row_halves;
    if (IS_ODD_BLOCK(p.block_bytes)) {
      const OddBytes bytes = odd_bytes(i);
      const u32 low = u32(from[blocks + bytes.low / 2]) >> (8 * (bytes.low % 2));
      const u32 high = u32(from[blocks + bytes.high / 2]) >> (8 * (bytes.high % 2));
      to[tile + odd_tile_halfword(row, i)] = u16((low & 255u) | (high & 255u) << 8);
    } else {
      to[tile + tile_halfword(p.block_bytes, row, i)] = from[blocks + i];
    }
  }
}

}  // namespace hearth::backend::gpu
