// One threadgroup a run. A thread takes every k_group_size.x-th group of four values; simdgroups
// meet in `partial`. Bound by memory: x is read twice, the second time from cache.

#include "backend/gpu/kernels/rms_norm.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

KERNEL(rms_norm_f32, 256, RmsNormParams, BUFFER(0, const f32, x), BUFFER(1, const f32, weight),
       BUFFER(2, f32, y)) {
  SHARED_ARRAY(f32, partial, 8);
  DEVICE(const f32) x_run = x + u64(k_group.x) * p.n;
  DEVICE(f32) y_run = y + u64(k_group.x) * p.n;
  const u32 n4 = p.n / 4;

  f32 sum = 0.0f;
  for (u32 i = k_thread.x; i < n4; i += k_group_size.x) {
    const f32x4 v = load4(x_run + 4 * i);
    sum = dot4(v, v, sum);
  }
  sum = simd_sum_f32(sum);
  if (k_lane == 0) {
    partial[k_simdgroup] = sum;
  }
  group_barrier();
  const f32 total = simd_sum_f32(k_lane < k_group_size.x / 32 ? partial[k_lane] : 0.0f);

  const f32 inverse = rsqrt_f32(total / f32(p.n) + p.eps);
  for (u32 i = k_thread.x; i < n4; i += k_group_size.x) {
    store4(y_run + 4 * i, load4(x_run + 4 * i) * inverse * load4(weight + 4 * i));
  }
}

}  // namespace hearth::backend::gpu
