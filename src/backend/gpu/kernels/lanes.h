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

#define SQUARES_STEPS 8  // whose loads do not wait for each other

/// add_squares, add_squares_device: go on with partial sum lane % 16 of squares, by x [n] that
/// begins at a multiple of 16.
#define ADD_SQUARES(name, MEMORY)                                                 \
  DEVICE_FN f32 name(MEMORY(const f32) x, u32 n, u32 lane, f32 partial) {         \
    u32 i = lane % N_LANES;                                                       \
    for (; i + (SQUARES_STEPS - 1) * N_LANES < n; i += SQUARES_STEPS * N_LANES) { \
      f32 values[SQUARES_STEPS];                                                  \
      UNROLL for (u32 step = 0; step < SQUARES_STEPS; ++step) {                   \
        values[step] = x[i + step * N_LANES];                                     \
      }                                                                           \
      UNROLL for (u32 step = 0; step < SQUARES_STEPS; ++step) {                   \
        partial = fma_f32(values[step], values[step], partial);                   \
      }                                                                           \
    }                                                                             \
    for (; i < n; i += N_LANES) {                                                 \
      partial = fma_f32(x[i], x[i], partial);                                     \
    }                                                                             \
    return partial;                                                               \
  }

/// add_squares for n a multiple of 16 SQUARES_STEPS: what comes next is read while some is added.
DEVICE_FN f32 add_squares_ahead(SHARED(const f32) x, u32 n, u32 lane, f32 partial) {
  SHARED(const f32) mine = x + lane % N_LANES;
  f32 values[SQUARES_STEPS];
  UNROLL for (u32 step = 0; step < SQUARES_STEPS; ++step) {
    values[step] = mine[step * N_LANES];
  }
  for (u32 i = SQUARES_STEPS * N_LANES; i <= n; i += SQUARES_STEPS * N_LANES) {
    const u32 ahead = i < n ? i : 0u;
    f32 next[SQUARES_STEPS];
    UNROLL for (u32 step = 0; step < SQUARES_STEPS; ++step) {
      next[step] = mine[ahead + step * N_LANES];
    }
    UNROLL for (u32 step = 0; step < SQUARES_STEPS; ++step) {
      partial = fma_f32(values[step], values[step], partial);
      values[step] = next[step];
    }
  }
  return partial;
}

ADD_SQUARES(add_squares, SHARED)
ADD_SQUARES(add_squares_device, DEVICE)

}  // namespace hearth::backend::gpu
