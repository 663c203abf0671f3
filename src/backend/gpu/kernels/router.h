#pragma once
/// The choice of experts (graph/ops/router.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define ROUTER_MAX_EXPERTS 1024
#define ROUTER_MAX_USED 64

/// router_f32. Buffers: counts, logits [rows, n_experts], routing [rows, 2 n_used]: experts by
/// falling probability, as floats, then their weights. Rows are those of the step.
/// Grid (capacity of rows); threads a multiple of 32, at most 256.
struct RouterParams {
  u32 n_experts;  // at most ROUTER_MAX_EXPERTS
  u32 n_used;     // at most ROUTER_MAX_USED
};

}  // namespace hearth::backend::gpu
