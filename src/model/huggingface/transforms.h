#pragma once
/// The transforms that the tables of families name.

#include "base/result.h"
#include "model/huggingface/family.h"

namespace hearth::model {

/// Norm weights that are stored as their distance from one: 1 + w, as F32; in MLX's layout of
/// hybrid models, w.
Result<void> zero_centred(const Dimensions& dimensions, Gather& gather);
/// A_log to the decay that it stands for: -exp(w), as F32.
Result<void> decay(const Dimensions& dimensions, Gather& gather);
/// [1, n] to [n].
Result<void> row_vector(const Dimensions& dimensions, Gather& gather);
/// A convolution over one channel each: [channels, 1, taps], or MLX's [channels, taps, 1], to
/// [channels, taps].
Result<void> convolution(const Dimensions& dimensions, Gather& gather);

/// Queries and keys of models whose canonical rotation pairs neighbours.
Result<void> query_pairs(const Dimensions& dimensions, Gather& gather);
Result<void> key_pairs(const Dimensions& dimensions, Gather& gather);

/// The halves of fused experts: [experts, 2 * ffn, embed] to [experts, ffn, embed].
Result<void> gate_half(const Dimensions& dimensions, Gather& gather);
Result<void> up_half(const Dimensions& dimensions, Gather& gather);

/// Tensors of recurrent layers whose value heads are tiled in GGUF: those of value_dim rows a head,
/// those of one, and one for which the value heads are its columns.
Result<void> tiled_rows(const Dimensions& dimensions, Gather& gather);
Result<void> tiled_heads(const Dimensions& dimensions, Gather& gather);
Result<void> tiled_columns(const Dimensions& dimensions, Gather& gather);
/// Query and key rows, then value rows: the value rows alone are tiled.
Result<void> tiled_qkv(const Dimensions& dimensions, Gather& gather);
Result<void> tiled_convolution(const Dimensions& dimensions, Gather& gather);
Result<void> tiled_decay(const Dimensions& dimensions, Gather& gather);

/// The parts of a projection that is fused per key head.
Result<void> qkv_of_fused(const Dimensions& dimensions, Gather& gather);
Result<void> z_of_fused(const Dimensions& dimensions, Gather& gather);

}  // namespace hearth::model
