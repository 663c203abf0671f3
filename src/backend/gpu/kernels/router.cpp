// A threadgroup per row. The first simdgroup adds up the exponentials in sixteen chains; the rest
// is shared by all (kernels/router_ranks.h).

#include "backend/gpu/kernels/router.h"

#include "backend/gpu/kernels/router_ranks.h"

namespace hearth::backend::gpu {

KERNEL(router_f32, 256, RouterParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, logits),
       BUFFER(2, f32, routing)) {
  SHARED_ARRAY(f32, values, ROUTER_MAX_EXPERTS);  // exponentials, then probabilities
  SHARED_ARRAY(u32, chosen, ROUTER_MAX_USED);
  SHARED_ARRAY(f32, maxima, 8);  // per simdgroup
  SHARED_ARRAY(f32, total, 1);
  if (k_group.x >= counts[0]) {
    return;
  }
  DEVICE(const f32) row_logits = logits + u64(k_group.x) * p.n_experts;
  f32 maximum = largest_logit(row_logits, p.n_experts, k_thread.x, k_group_size.x);
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
    const f32 sum = sum_exponentials(values, p.n_experts, k_lane);
    if (k_lane == 0) {
      total[0] = sum;
    }
  }
  group_barrier();
  const f32 sum = total[0];
  for (u32 i = k_thread.x; i < p.n_experts; i += k_group_size.x) {
    values[i] = values[i] / sum;
  }
  group_barrier();
  if (!chooses_by_rounds(p.n_experts)) {
    choose_experts(values, p.n_experts, p.n_used, sum, chosen, k_thread.x, k_group_size.x);
  } else if (k_simdgroup == 0) {
    choose_by_rounds(values, p.n_experts, p.n_used, sum, chosen, k_lane);
  }
  group_barrier();
  write_routing(values, chosen, p.n_used, k_thread.x, k_group_size.x,
                routing + u64(k_group.x) * p.n_used * 2);
}

}  // namespace hearth::backend::gpu
