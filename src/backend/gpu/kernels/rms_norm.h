#pragma once
/// Root-mean-square normalisation of runs of n values (graph/ops/rms_norm.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// rms_norm_f32: a threadgroup per run. x, y [runs, n], weight [n].
struct RmsNormParams {
  u32 n;  // a multiple of 4
  f32 eps;
};

}  // namespace hearth::backend::gpu
