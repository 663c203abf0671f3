// A thread per sum; bound by memory.

#include "backend/gpu/kernels/expert_sum.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

KERNEL(expert_sum_f32, 256, ExpertSumParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, const f32, routing), BUFFER(3, const f32, residual), BUFFER(4, f32, y)) {
  const u32 row = k_group.y;
  const u32 i = k_group.x * k_group_size.x + k_thread.x;
  if (row >= counts[0] || i >= p.n) {
    return;
  }
  DEVICE(const f32) weights = routing + u64(row) * 2u * p.n_used + p.n_used;
  DEVICE(const f32) from = x + u64(row) * p.n_used * p.n + i;
  f32 sum = 0.0f;
  for (u32 slot = 0; slot < p.n_used; ++slot) {
    sum = fma_f32(weights[slot], from[u64(slot) * p.n], sum);
  }
  const u64 at = u64(row) * p.n + i;
  y[at] = p.has_residual != 0u ? sum + residual[at] : sum;
}

}  // namespace hearth::backend::gpu
