#pragma once
/// Rotary position embedding (graph/ops/rope.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// How one head is rotated: pair j is elements j * pair_stride and pair_gap further: 2 and 1 for
/// adjacent pairs, 1 and n_rot / 2 for halves that are split. Elements from n_rot on stay.
/// `angles` [rows of the step, n_rot]: of each row first the n_rot / 2 cosines, then the sines,
/// both times the magnitude (graph::RopeTable::angles), because they take more precision than a GPU
/// has.
struct RopePairs {
  u32 n_rot;  // even; 0: nothing rotates, and any small buffer may stand for `angles`
  u32 pair_stride;
  u32 pair_gap;
};

/// rope_f32: Buffers: counts, x [rows, n_heads * head_dim], angles, y of the shape of x.
/// Grid (n_heads, capacity of rows); threads a multiple of 32, at most 256.
struct RopeParams {
  RopePairs pairs;
  u32 head_dim;
};

}  // namespace hearth::backend::gpu
