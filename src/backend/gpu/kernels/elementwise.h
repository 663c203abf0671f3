#pragma once
/// Sums, products and activations of rows, element by element (graph/ops/add.h, mul.h,
/// activation.h, softcap.h).
///
/// All: `axis` says which of `counts` (rows of the step, logit rows, sequences) is the number of
/// rows. Values are [rows, n]. A thread per four elements of all rows together:
/// grid (ceil(capacity of rows * n / (4 * threads))), threads a multiple of 32, at most 256.
/// Capacity * n is below 2^32.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// add_f32: y = a + b. Buffers: counts, a, b, y.
struct AddParams {
  u32 n;
  u32 axis;
};

/// mul_f32: y = a * b. Buffers: counts, a, b, y.
struct MulParams {
  u32 n;
  u32 axis;
  u32 one_each;  // 1: b is [rows, 1]
};

/// activation_f32: y = activation(x). Buffers: counts, x, y.
/// gated_f32: y = activation(gate) * up. Buffers: counts, gate, up, y.
struct ActivationParams {
  u32 n;
  u32 axis;
  u32 kind;  // graph::ActivationKind as a number
};

/// softcap_f32: y = cap * tanh(x / cap). Buffers: counts, x, y.
struct SoftcapParams {
  u32 n;
  u32 axis;
  f32 cap;
};

}  // namespace hearth::backend::gpu
