// A thread per four elements; bound by memory.

#include "backend/gpu/kernels/elementwise.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

KERNEL(add_f32, 256, ElementwiseParams, BUFFER(0, const f32, a), BUFFER(1, const f32, b),
       BUFFER(2, f32, y)) {
  const u32 i = 4 * (k_group.x * k_group_size.x + k_thread.x);
  if (i < p.n) {
    store4(y + i, load4(a + i) + load4(b + i));
  }
}

KERNEL(swiglu_f32, 256, ElementwiseParams, BUFFER(0, const f32, gate), BUFFER(1, const f32, up),
       BUFFER(2, f32, y)) {
  const u32 i = 4 * (k_group.x * k_group_size.x + k_thread.x);
  if (i < p.n) {
    const f32x4 g = load4(gate + i);
    store4(y + i,
           make4(silu_f32(g.x), silu_f32(g.y), silu_f32(g.z), silu_f32(g.w)) * load4(up + i));
  }
}

KERNEL(geglu_f32, 256, ElementwiseParams, BUFFER(0, const f32, gate), BUFFER(1, const f32, up),
       BUFFER(2, f32, y)) {
  const u32 i = 4 * (k_group.x * k_group_size.x + k_thread.x);
  if (i < p.n) {
    const f32x4 g = load4(gate + i);
    store4(y + i,
           make4(gelu_f32(g.x), gelu_f32(g.y), gelu_f32(g.z), gelu_f32(g.w)) * load4(up + i));
  }
}

}  // namespace hearth::backend::gpu
