#pragma once
/// A chain of multiply-adds of floats in shared memory.

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

#define CHAIN_FOURS 4  // that are read at once, at most

/// Goes on with a chain by n values, a multiple of 4 * fours; while some are added, as many fours
/// of what comes next are read. Both are constants.
DEVICE_FN f32 add_float_chain(SHARED(const f32) weights, SHARED(const f32) x, u32 n, u32 fours,
                              f32 sum) {
  f32x4 w[CHAIN_FOURS];
  f32x4 v[CHAIN_FOURS];
  UNROLL for (u32 i = 0; i < fours; ++i) {
    w[i] = load4(weights + 4 * i);
    v[i] = load4(x + 4 * i);
  }
  UNROLL for (u32 step = 4 * fours; step <= n; step += 4 * fours) {
    const u32 ahead = step % n;
    f32x4 next_w[CHAIN_FOURS];
    f32x4 next_v[CHAIN_FOURS];
    UNROLL for (u32 i = 0; i < fours; ++i) {
      next_w[i] = load4(weights + (ahead + 4 * i));
      next_v[i] = load4(x + (ahead + 4 * i));
    }
    UNROLL for (u32 i = 0; i < fours; ++i) {
      sum = dot4(w[i], v[i], sum);
      w[i] = next_w[i];
      v[i] = next_v[i];
    }
  }
  return sum;
}

}  // namespace hearth::backend::gpu
