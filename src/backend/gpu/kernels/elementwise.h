#pragma once
/// Sums and gates of activations, element by element (graph/ops/add.h, activation.h, mul.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// add_f32: y = a + b. swiglu_f32, geglu_f32: y = silu(gate) * up, gelu(gate) * up.
/// A thread per four elements.
struct ElementwiseParams {
  u32 n;  // a multiple of 4
};

}  // namespace hearth::backend::gpu
