#pragma once
/// The choice of experts (graph/ops/router.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define ROUTER_MAX_EXPERTS 1024
#define ROUTER_MAX_USED 64

/// router_f32: a threadgroup of up to 256 per row. logits [rows, n_experts]; routing [rows, 2
/// n_used]: experts by falling logit, equal ones by number, then their weights.
struct RouterParams {
  u32 n_experts;
  u32 n_used;
};

}  // namespace hearth::backend::gpu
