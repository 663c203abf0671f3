#pragma once
/// Rotary position embedding (graph/ops/rope.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// rope_f32 rotates pair j of each head, elements j * pair_stride and pair_gap further: 2 and 1 for
/// adjacent pairs, 1 and n_rot / 2 for halves that are split. In place: x [rows, n_heads *
/// head_dim]; a threadgroup per row.
/// positions [rows]; angles [positions, n_rot / 2, 2]: cosine and sine, times the magnitude, from
/// graph::RopeTable, because they take more precision than a GPU has.
struct RopeParams {
  u32 n_heads;
  u32 head_dim;
  u32 n_rot;  // even
  u32 pair_stride;
  u32 pair_gap;
};

}  // namespace hearth::backend::gpu
