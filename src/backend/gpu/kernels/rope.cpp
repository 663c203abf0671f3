// A threadgroup per head of a row: a thread per rotated pair, then a thread per element that stays.

#include "backend/gpu/kernels/rope.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/rope_pair.h"

namespace hearth::backend::gpu {

KERNEL(rope_f32, 256, RopeParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, const f32, angles), BUFFER(3, f32, y)) {
  const u32 row = k_group.y;
  if (row >= counts[0]) {
    return;
  }
  const u64 start = (u64(row) * k_grid_size.x + k_group.x) * p.head_dim;
  DEVICE(const f32) of_row = angles + u64(row) * p.pairs.n_rot;
  for (u32 j = k_thread.x; j < p.pairs.n_rot / 2; j += k_group_size.x) {
    f32 a = x[start + rope_first(p.pairs, j)];
    f32 b = x[start + rope_second(p.pairs, j)];
    rotate_pair(of_row[j], of_row[p.pairs.n_rot / 2 + j], a, b);
    y[start + rope_first(p.pairs, j)] = a;
    y[start + rope_second(p.pairs, j)] = b;
  }
  for (u32 i = p.pairs.n_rot + k_thread.x; i < p.head_dim; i += k_group_size.x) {
    y[start + i] = x[start + i];
  }
}

}  // namespace hearth::backend::gpu
