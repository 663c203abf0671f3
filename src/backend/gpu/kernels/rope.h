#pragma once
/// Rotary position embedding (graph/ops/rope.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// rope_adjacent_f32 rotates elements (2j, 2j + 1) of each head, rope_half_split_f32 elements
/// (j, j + n_rot / 2). In place: x [rows, n_heads * head_dim]; a threadgroup per row.
/// positions [rows]; angles [positions, n_rot / 2, 2]: cosine and sine, times the magnitude, from
/// graph::RopeTable, because they take more precision than a GPU has.
struct RopeParams {
  u32 n_heads;
  u32 head_dim;
  u32 n_rot;  // even
};

}  // namespace hearth::backend::gpu
