#pragma once
/// Root-mean-square normalisation of runs of n values, and plan::NormAdd (graph/ops/rms_norm.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define RMS_NORM_CHUNK 4096  // values that pass through shared memory at once

/// rms_norm_f32: y = x / sqrt(mean(x^2) + eps) * weight, with `adds_residual` residual + that.
/// Buffers: counts, x [rows, runs_per_row * n], weight [n], residual (any small buffer unless
/// adds_residual) and y, both of the shape of x.
/// Grid (runs_per_row, capacity of rows); threads a multiple of 32, at most 256.
struct RmsNormParams {
  u32 n;     // of a run; any number
  u32 axis;  // which of `counts` is the number of rows
  u32 adds_residual;
  f32 eps;
};

}  // namespace hearth::backend::gpu
