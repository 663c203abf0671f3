#pragma once
/// The rotation of one pair of elements (graph::rotate_head).

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/rope.h"

namespace hearth::backend::gpu {

/// The element of a head that pair j begins with, and the other.
DEVICE_FN u32 rope_first(PARAMS(RopePairs) pairs, u32 j) {
  return j * pairs.pair_stride;
}
DEVICE_FN u32 rope_second(PARAMS(RopePairs) pairs, u32 j) {
  return j * pairs.pair_stride + pairs.pair_gap;
}

/// a and b become what they are after the rotation.
DEVICE_FN void rotate_pair(f32 cosine, f32 sine, THREAD_REF(f32) a, THREAD_REF(f32) b) {
  const f32 first = fma_f32(a, cosine, -(b * sine));
  b = fma_f32(a, sine, b * cosine);
  a = first;
}

}  // namespace hearth::backend::gpu
