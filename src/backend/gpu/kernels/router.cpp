// A threadgroup per row. The first simdgroup adds up the exponentials in sixteen chains. The rank
// of an expert is the number of those before it, counted by comparing with all others in shared
// memory: no order of threads enters the choice.

#include "backend/gpu/kernels/router.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

/// 1 if expert j with value a comes before expert i with value b.
DEVICE_FN u32 is_before(f32 a, u32 j, f32 b, u32 i) {
  return a > b || (a == b && j < i) ? 1u : 0u;
}

KERNEL(router_f32, 256, RouterParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, logits),
       BUFFER(2, f32, routing)) {
  SHARED_ARRAY(f32, values, ROUTER_MAX_EXPERTS);  // logits, then exponentials, then probabilities
  SHARED_ARRAY(u32, chosen, ROUTER_MAX_USED);
  SHARED_ARRAY(f32, maxima, 8);  // per simdgroup
  SHARED_ARRAY(f32, total, 1);
  if (k_group.x >= counts[0]) {
    return;
  }
  DEVICE(const f32) row_logits = logits + u64(k_group.x) * p.n_experts;
  DEVICE(f32) row_routing = routing + u64(k_group.x) * p.n_used * 2;

  // Whatever becomes of the maximum with a NaN, the sum will be one.
  f32 maximum = row_logits[0];
  for (u32 i = k_thread.x; i < p.n_experts; i += k_group_size.x) {
    maximum = row_logits[i] > maximum ? row_logits[i] : maximum;
  }
  maximum = simd_max_f32(maximum);
  if (k_lane == 0) {
    maxima[k_simdgroup] = maximum;
  }
  group_barrier();
  maximum = simd_max_f32(maxima[k_lane % (k_group_size.x / 32)]);
  for (u32 i = k_thread.x; i < p.n_experts; i += k_group_size.x) {
    values[i] = exp_f32(row_logits[i] - maximum);
  }
  group_barrier();

  if (k_simdgroup == 0) {
    f32 partial = 0.0f;
    for (u32 i = k_lane % N_LANES; i < p.n_experts; i += N_LANES) {
      partial += values[i];
    }
    partial = sum_lanes(partial);
    if (k_lane == 0) {
      total[0] = partial;
    }
  }
  group_barrier();
  const f32 sum = total[0];
  for (u32 i = k_thread.x; i < p.n_experts; i += k_group_size.x) {
    values[i] = values[i] / sum;
  }
  group_barrier();

  for (u32 i = k_thread.x; i < p.n_experts; i += k_group_size.x) {
    u32 rank = 0;
    const f32 value = values[i];
    u32 j = 0;
    for (; j + 8 <= p.n_experts; j += 8) {
      const f32x4 low = load4(values + j);
      const f32x4 high = load4(values + j + 4);
      rank += is_before(low.x, j, value, i) + is_before(low.y, j + 1, value, i) +
              is_before(low.z, j + 2, value, i) + is_before(low.w, j + 3, value, i) +
              is_before(high.x, j + 4, value, i) + is_before(high.y, j + 5, value, i) +
              is_before(high.z, j + 6, value, i) + is_before(high.w, j + 7, value, i);
    }
    for (; j < p.n_experts; ++j) {
      rank += is_before(values[j], j, value, i);
    }
    // Ranks mean nothing with a NaN: experts 0, 1, ... then.
    rank = is_nan_f32(sum) ? i : rank;
    if (rank < p.n_used) {
      chosen[rank] = i;
    }
  }
  group_barrier();

  f32 chosen_sum = 0.0f;
  for (u32 slot = 0; slot < p.n_used; ++slot) {
    chosen_sum += values[chosen[slot]];
  }
  for (u32 slot = k_thread.x; slot < p.n_used; slot += k_group_size.x) {
    row_routing[slot] = f32(chosen[slot]);
    row_routing[p.n_used + slot] = values[chosen[slot]] / chosen_sum;
  }
}

}  // namespace hearth::backend::gpu
