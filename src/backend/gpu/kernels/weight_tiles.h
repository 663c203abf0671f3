#pragma once
/// Matrices in tiles: 16 rows by 256 weights, in the order in which lanes of integer tiles
/// (dialect/dialect.h) take them. As many bytes as the file has, but for rows that fill up the last
/// sixteen.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define TILE_ROWS 16

/// Every type that has tiles, with the bytes of its blocks: X(name, block_bytes, argument). Types
/// with blocks of as many bytes have their tiles in the same order.
#define TILED_TYPES(X, argument) \
  X(Q4_K, 144, argument)         \
  X(Q5_K, 176, argument)         \
  X(Q6_K, 210, argument)         \
  X(Q8_0, 34, argument)          \
  X(Q4_0, 18, argument)          \
  X(IQ4_NL, 18, argument)        \
  X(MXFP4, 17, argument)

#define IS_BLOCK_OF_TYPE(name, type_bytes, block_bytes) || (block_bytes) == (type_bytes)
/// Whether blocks of so many bytes are of a type that has tiles.
#define HAS_TILES(block_bytes) (false TILED_TYPES(IS_BLOCK_OF_TYPE, block_bytes))

/// Blocks of a row that a tile has: one of 256 weights, or eight of 32.
#define TILE_BLOCKS(block_bytes) ((block_bytes) < 64 ? 8u : 1u)

/// A tile begins with what each row has 16 bytes of: of Q4_K and Q5_K factors and scales, of Q6_K
/// its scales, of types with blocks of 32 weights the scale of each block, which of MXFP4 are 8
/// bytes. Then pieces of 512 bytes. Of blocks of 256: of each row a run of 32 bytes of codes, of
/// which lane 4 g + q has bytes 8 q ... 8 q + 7 of rows g and g + 8: a word of either, then the
/// other of either. Four runs of the lower bits, then the others. Then of Q6_K the factor of each
/// row. Of blocks of 32: of Q8_0 a block's codes, of which the lane has words q and q + 4 of rows g
/// and g + 8, of four bits those of two blocks, of which it has word q: a word of either row, then
/// the other of either.
#define TILE_HEAD_BYTES 256
#define ODD_HEAD_BYTES 128  // of MXFP4
#define TILE_PIECE_BYTES 512

/// tile_weights: [matrices, n_rows, n_tiles] groups of TILE_BLOCKS blocks to [matrices, ceil(n_rows
/// / TILE_ROWS)] strips of n_tiles tiles; rows behind a matrix's last repeat it. Buffers: from, to.
/// Threadgroups of TILE_WEIGHTS_THREADS, grid (n_tiles, strips of all matrices).
#define TILE_WEIGHTS_THREADS 256
struct TileWeightsParams {
  u32 block_bytes;  // HAS_TILES
  u32 n_tiles;      // of a row
  u32 n_rows;       // of a matrix
};

}  // namespace hearth::backend::gpu
