// A thread per rotated pair, a threadgroup per row.

#include "backend/gpu/kernels/rope.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

KERNEL(rope_f32, 256, RopeParams, BUFFER(0, f32, x), BUFFER(1, const i32, positions),
       BUFFER(2, const f32, angles)) {
  const u32 row = k_group.x;
  const u32 n_pairs = p.n_rot / 2;
  DEVICE(const f32) row_angles = angles + u64(u32(positions[row])) * p.n_rot;
  for (u32 i = k_thread.x; i < p.n_heads * n_pairs; i += k_group_size.x) {
    const u32 pair = i % n_pairs;
    DEVICE(f32) head = x + u64(row * p.n_heads + i / n_pairs) * p.head_dim;
    const u32 first = pair * p.pair_stride;
    const u32 second = first + p.pair_gap;
    const f32 cosine = row_angles[2 * pair];
    const f32 sine = row_angles[2 * pair + 1];
    const f32 a = head[first];
    const f32 b = head[second];
    head[first] = fma_f32(a, cosine, -(b * sine));
    head[second] = fma_f32(a, sine, b * cosine);
  }
}

}  // namespace hearth::backend::gpu
