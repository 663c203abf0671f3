// A threadgroup per row. The rank of an expert is the number of those before it, counted by
// comparing with all others in shared memory: no order of threads enters the choice.

#include "backend/gpu/kernels/router.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

DEVICE_FN bool is_nan(f32 x) {
  return (bits_of_f32(x) & 0x7fffffffu) > 0x7f800000u;  // a comparison may be optimised away
}

KERNEL(router_f32, 256, RouterParams, BUFFER(0, const f32, logits), BUFFER(1, f32, routing)) {
  SHARED_ARRAY(f32, values, ROUTER_MAX_EXPERTS);
  SHARED_ARRAY(u32, chosen, ROUTER_MAX_USED);
  SHARED_ARRAY(u32, n_nan, 8);  // per simdgroup
  DEVICE(const f32) row_logits = logits + u64(k_group.x) * p.n_experts;
  DEVICE(f32) row_routing = routing + u64(k_group.x) * p.n_used * 2;

  u32 my_nan = 0;
  for (u32 i = k_thread.x; i < p.n_experts; i += k_group_size.x) {
    values[i] = row_logits[i];
    my_nan += is_nan(row_logits[i]) ? 1u : 0u;
  }
  my_nan = simd_sum_u32(my_nan);
  if (k_lane == 0) {
    n_nan[k_simdgroup] = my_nan;
  }
  group_barrier();
  const bool has_nan = simd_sum_u32(k_lane < k_group_size.x / 32 ? n_nan[k_lane] : 0u) != 0u;

  for (u32 i = k_thread.x; i < p.n_experts; i += k_group_size.x) {
    u32 rank = 0;
    for (u32 j = 0; j < p.n_experts; ++j) {
      rank += values[j] > values[i] || (values[j] == values[i] && j < i) ? 1u : 0u;
    }
    // Ranks mean nothing with a NaN: experts 0, 1, ... then.
    rank = has_nan ? i : rank;
    if (rank < p.n_used) {
      chosen[rank] = i;
    }
  }
  group_barrier();

  f32 sum = 0.0f;
  for (u32 slot = 0; slot < p.n_used; ++slot) {
    sum += exp_f32(values[chosen[slot]] - values[chosen[0]]);
  }
  for (u32 slot = k_thread.x; slot < p.n_used; slot += k_group_size.x) {
    const f32 weight = exp_f32(values[chosen[slot]] - values[chosen[0]]) / sum;
    row_routing[slot] = f32(chosen[slot]);
    row_routing[p.n_used + slot] = has_nan ? f32_of_bits(0x7fc00000u) : weight;
  }
}

}  // namespace hearth::backend::gpu
