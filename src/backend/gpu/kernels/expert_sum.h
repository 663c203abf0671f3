#pragma once
/// The weighted sum of what the chosen experts say (graph/ops/expert_sum.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define EXPERT_SUM_THREADS 128

/// expert_sum_f32: y[row, i] = sum over slots of weight[row, slot] x[row, slot, i] [+ residual].
/// Threadgroups of EXPERT_SUM_THREADS, grid (ceil(n / 4 / EXPERT_SUM_THREADS), capacity). Buffers:
///   0 counts u32 [3]                 rows of the step, of its logits, sequences
///   1 x f32 [rows, n_used, n]
///   2 routing f32 [rows, 2 n_used]   as graph::Router writes it
///   3 residual f32 [rows, n]         any buffer that is only read unless has_residual
///   4 y f32 [rows, n]
struct ExpertSumParams {
  u32 n;  // a multiple of 4
  u32 n_used;
  u32 has_residual;
};

}  // namespace hearth::backend::gpu
