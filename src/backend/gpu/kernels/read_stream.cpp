// A thread per 16 bytes, four of them at a time, so that enough is on its way. Bound by memory.

#include "backend/gpu/kernels/read_stream.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

KERNEL(read_stream_u32, 256, ReadStreamParams, BUFFER(0, const u32, words), BUFFER(1, u32, sums)) {
  SHARED_ARRAY(u32, simdgroup_sums, 8);
  const u64 n_threads = u64(k_grid_size.x) * k_group_size.x;
  u32 sum = 0;
  u64 i = u64(k_group.x) * k_group_size.x + k_thread.x;
  for (; i + 3 * n_threads < p.n; i += 4 * n_threads) {
    u32x4 pieces[4];
    UNROLL for (u32 part = 0; part < 4; ++part) {
      pieces[part] = load4(words + 4 * (i + part * n_threads));
    }
    UNROLL for (u32 part = 0; part < 4; ++part) {
      sum += (pieces[part].x + pieces[part].y) + (pieces[part].z + pieces[part].w);
    }
  }
  for (; i < p.n; i += n_threads) {
    const u32x4 piece = load4(words + 4 * i);
    sum += (piece.x + piece.y) + (piece.z + piece.w);
  }
  sum = simd_sum_u32(sum);
  if (k_lane == 0) {
    simdgroup_sums[k_simdgroup] = sum;
  }
  group_barrier();
  if (k_thread.x == 0) {
    u32 total = 0;
    for (u32 s = 0; s < k_group_size.x / 32; ++s) {
      total += simdgroup_sums[s];
    }
    sums[k_group.x] = total;
  }
}

}  // namespace hearth::backend::gpu
