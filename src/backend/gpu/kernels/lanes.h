#pragma once
/// Sums in the order of base/lanes.h. Lanes j and j + 16 of a simdgroup both hold partial sum j, so
/// that all 32 end up with the result.

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

#define N_LANES 16  // hearth::n_lanes

/// The halving tree over the partial sums of 16 neighbouring lanes.
DEVICE_FN f32 sum_lanes(f32 partial) {
  partial += shuffle_xor(partial, 8);
  partial += shuffle_xor(partial, 4);
  partial += shuffle_xor(partial, 2);
  return partial + shuffle_xor(partial, 1);
}

/// Goes on with partial sum lane % 16 of squares, by x [n] that begins at a multiple of 16.
DEVICE_FN f32 add_squares(SHARED(const f32) x, u32 n, u32 lane, f32 partial) {
  for (u32 i = lane % N_LANES; i < n; i += N_LANES) {
    partial = fma_f32(x[i], x[i], partial);
  }
  return partial;
}

}  // namespace hearth::backend::gpu
