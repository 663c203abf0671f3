#pragma once
/// Matrices in tiles: 16 rows by a block of 256 weights, in the order in which lanes of integer
/// tiles (dialect/dialect.h) take them. As many bytes as the file has, but for rows that fill up
/// the last sixteen.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define TILE_ROWS 16

/// A tile begins with what each row has 16 bytes of: of Q4_K and Q5_K factors and scales, of Q6_K
/// its scales. Then pieces of 512 bytes: of each row a run of 32 bytes of codes, of which lane 4 g
/// + q has bytes 8 q ... 8 q + 7 of rows g and g + 8: a word of either, then the other of either.
/// Four runs of the lower bits, then the others. Then of Q6_K the factor of each row.
#define TILE_HEAD_BYTES 256
#define TILE_PIECE_BYTES 512

/// Whether blocks of so many bytes are of a type that has tiles: Q4_K, Q5_K, Q6_K.
#define HAS_TILES(block_bytes) \
  ((block_bytes) == 144 || (block_bytes) == 176 || (block_bytes) == 210)

/// tile_weights: [matrices, n_rows, n_blocks] blocks to [matrices, ceil(n_rows / TILE_ROWS)] strips
/// of n_blocks tiles; rows behind a matrix's last repeat it. Buffers: from, to. Threadgroups of
/// TILE_WEIGHTS_THREADS, grid (n_blocks, strips of all matrices).
#define TILE_WEIGHTS_THREADS 256
struct TileWeightsParams {
  u32 block_bytes;  // HAS_TILES
  u32 n_blocks;     // of a row
  u32 n_rows;       // of a matrix
};

}  // namespace hearth::backend::gpu
