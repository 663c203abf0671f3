// A thread has four neighbouring sums. Bound by memory.

#include "backend/gpu/kernels/expert_sum.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

#define SLOTS_AT_ONCE 4u

KERNEL(expert_sum_f32, EXPERT_SUM_THREADS, ExpertSumParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, x), BUFFER(2, const f32, routing), BUFFER(3, const f32, residual),
       BUFFER(4, f32, y)) {
  const u32 row = k_group.y;
  const u32 i = 4 * (k_group.x * k_group_size.x + k_thread.x);
  if (row >= counts[0] || i >= p.n) {
    return;
  }
  DEVICE(const f32) weights = routing + u64(row) * 2u * p.n_used + p.n_used;
  DEVICE(const f32) from = x + u64(row) * p.n_used * p.n + i;
  f32x4 sum = make4(0.0f, 0.0f, 0.0f, 0.0f);
  for (u32 first = 0; first < p.n_used; first += SLOTS_AT_ONCE) {
    f32x4 values[SLOTS_AT_ONCE];
    UNROLL for (u32 j = 0; j < SLOTS_AT_ONCE; ++j) {
      values[j] = load4(from + u64(min_u32(first + j, p.n_used - 1u)) * p.n);
    }
    UNROLL for (u32 j = 0; j < SLOTS_AT_ONCE; ++j) {
      if (first + j < p.n_used) {
        sum = fma4(values[j], weights[first + j], sum);
      }
    }
  }
  const u64 at = u64(row) * p.n + i;
  if (p.has_residual != 0u) {
    sum = sum + load4(residual + at);
  }
  store4(y + at, sum);
}

}  // namespace hearth::backend::gpu
