#pragma once
/// Rows of the embedding table (graph/ops/embed.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// embed_q4_k, embed_q6_k, embed_q8_0, embed_f16: the row of `table` [vocab, n] for each token,
/// times scale; y [rows, n]. A threadgroup per row.
struct EmbedParams {
  u32 n;  // a multiple of the block
  f32 scale;
};

}  // namespace hearth::backend::gpu
