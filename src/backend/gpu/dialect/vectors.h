#pragma once
/// Arithmetic on f32x4. Metal has the operators; the rest is the same text everywhere.

#ifndef __METAL_VERSION__
namespace hearth::backend::gpu {

DEVICE_FN f32x4 make4(f32 x, f32 y, f32 z, f32 w) {
  return {x, y, z, w};
}
DEVICE_FN f32x4 operator+(f32x4 a, f32x4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
DEVICE_FN f32x4 operator-(f32x4 a, f32x4 b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
}
DEVICE_FN f32x4 operator*(f32x4 a, f32x4 b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}
DEVICE_FN f32x4 operator*(f32x4 a, f32 b) {
  return {a.x * b, a.y * b, a.z * b, a.w * b};
}

}  // namespace hearth::backend::gpu
#endif

namespace hearth::backend::gpu {

/// a * b + c, each rounded once.
DEVICE_FN f32x4 fma4(f32x4 a, f32 b, f32x4 c) {
  return make4(fma_f32(a.x, b, c.x), fma_f32(a.y, b, c.y), fma_f32(a.z, b, c.z),
               fma_f32(a.w, b, c.w));
}

/// sum + a . b, one fused multiply-add after the other.
DEVICE_FN f32 dot4(f32x4 a, f32x4 b, f32 sum) {
  return fma_f32(a.w, b.w, fma_f32(a.z, b.z, fma_f32(a.y, b.y, fma_f32(a.x, b.x, sum))));
}

/// One branch for all four, which then do not wait for each other.
DEVICE_FN f32x4 activate4(u32 kind, f32x4 x) {
  if (kind == 0u) {
    return make4(silu_f32(x.x), silu_f32(x.y), silu_f32(x.z), silu_f32(x.w));
  }
  return make4(activate_f32(kind, x.x), activate_f32(kind, x.y), activate_f32(kind, x.z),
               activate_f32(kind, x.w));
}

DEVICE_FN f32 sum4(f32x4 a) {
  return (a.x + a.y) + (a.z + a.w);
}

}  // namespace hearth::backend::gpu
