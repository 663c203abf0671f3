// A threadgroup per run. It passes through shared memory in chunks, of which the first simdgroup
// sums the squares: sixteen chains of fused multiply-adds are all that the order of the sum allows.
// Bound by those chains for few rows, by memory for many.

#include "backend/gpu/kernels/rms_norm.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

KERNEL(rms_norm_f32, 256, RmsNormParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, const f32, weight), BUFFER(3, const f32, residual), BUFFER(4, f32, y)) {
  SHARED_ARRAY(f32, chunk, RMS_NORM_CHUNK);
  SHARED_ARRAY(f32, factor, 1);
  if (k_group.y >= counts[p.axis]) {
    return;
  }
  const u64 start = (u64(k_group.y) * k_grid_size.x + k_group.x) * p.n;

  f32 partial = 0.0f;
  for (u32 first = 0; first < p.n; first += RMS_NORM_CHUNK) {
    const u32 n_chunk = min_u32(p.n - first, RMS_NORM_CHUNK);
    group_barrier();  // the chunk before has been summed
    for (u32 i = k_thread.x; i < n_chunk; i += k_group_size.x) {
      chunk[i] = x[start + first + i];
    }
    group_barrier();
    if (k_simdgroup == 0) {
      partial = add_squares(chunk, n_chunk, k_lane, partial);
    }
  }
  if (k_simdgroup == 0) {
    const f32 inverse = 1.0f / sqrt_f32(sum_lanes(partial) / f32(p.n) + p.eps);
    if (k_lane == 0) {
      factor[0] = inverse;
    }
  }
  group_barrier();

  for (u32 i = k_thread.x; i < p.n; i += k_group_size.x) {
    const f32 normed = x[start + i] * factor[0] * weight[i];
    y[start + i] = p.adds_residual != 0u ? residual[start + i] + normed : normed;
  }
}

}  // namespace hearth::backend::gpu
