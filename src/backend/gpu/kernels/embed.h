#pragma once
/// Rows of the embedding table (graph/ops/embed.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define EMBED_THREADS 128

/// embed_<type>, for the types that product_<type> has: the row of the table for each token, times
/// scale. Threadgroups of EMBED_THREADS, grid (capacity). Buffers:
///   0 counts u32 [3]      rows of the step, of its logits, sequences
///   1 tokens i32 [rows]   below 0: chosen[-1 - token]
///   2 chosen u32          what the step before chose
///   3 table [vocab, n]    blocks, or with is_tiled tiles; begins at a multiple of 16 bytes
///   4 y f32 [rows, n]
struct EmbedParams {
  u32 n;  // a multiple of the block
  f32 scale;
  u32 is_tiled;  // kernels/weight_tiles.h
};

}  // namespace hearth::backend::gpu
