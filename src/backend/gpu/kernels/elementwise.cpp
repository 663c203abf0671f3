// A threadgroup takes four elements a thread, its threads side by side; bound by memory.

#include "backend/gpu/kernels/elementwise.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

KERNEL(add_f32, 256, AddParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, a),
       BUFFER(2, const f32, b), BUFFER(3, f32, y)) {
  const u32 n = counts[p.axis] * p.n;
  UNROLL for (u32 j = 0; j < 4; ++j) {
    const u32 i = (4 * k_group.x + j) * k_group_size.x + k_thread.x;
    if (i < n) {
      y[i] = a[i] + b[i];
    }
  }
}

KERNEL(mul_f32, 256, MulParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, a),
       BUFFER(2, const f32, b), BUFFER(3, f32, y)) {
  const u32 n = counts[p.axis] * p.n;
  const u32 n_each = p.one_each != 0u ? p.n : 1u;  // elements that meet one of b
  UNROLL for (u32 j = 0; j < 4; ++j) {
    const u32 i = (4 * k_group.x + j) * k_group_size.x + k_thread.x;
    if (i < n) {
      y[i] = a[i] * b[i / n_each];
    }
  }
}

KERNEL(activation_f32, 256, ActivationParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, f32, y)) {
  const u32 n = counts[p.axis] * p.n;
  UNROLL for (u32 j = 0; j < 4; ++j) {
    const u32 i = (4 * k_group.x + j) * k_group_size.x + k_thread.x;
    if (i < n) {
      y[i] = activate_f32(p.kind, x[i]);
    }
  }
}

KERNEL(gated_f32, 256, ActivationParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, gate),
       BUFFER(2, const f32, up), BUFFER(3, f32, y)) {
  const u32 n = counts[p.axis] * p.n;
  UNROLL for (u32 j = 0; j < 4; ++j) {
    const u32 i = (4 * k_group.x + j) * k_group_size.x + k_thread.x;
    if (i < n) {
      y[i] = activate_f32(p.kind, gate[i]) * up[i];
    }
  }
}

KERNEL(softcap_f32, 256, SoftcapParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, f32, y)) {
  const u32 n = counts[p.axis] * p.n;
  UNROLL for (u32 j = 0; j < 4; ++j) {
    const u32 i = (4 * k_group.x + j) * k_group_size.x + k_thread.x;
    if (i < n) {
      y[i] = p.cap * tanh_f32(x[i] / p.cap);
    }
  }
}

}  // namespace hearth::backend::gpu
