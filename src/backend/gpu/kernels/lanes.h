#pragma once
/// Sums over lanes; of floats in the order of base/lanes.h: lanes j and j + 16 of a simdgroup both
/// hold partial sum j, so that all 32 end up with the result.

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

/// The sum of the values of this and all lower lanes.
DEVICE_FN u32 sum_until(u32 value, u32 lane) {
  u32 sum = value;
  for (u32 distance = 1; distance < 32; distance *= 2) {
    const u32 other = shuffle(sum, lane >= distance ? lane - distance : 0u);
    sum += lane >= distance ? other : 0u;
  }
  return sum;
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

// Columns: values 16 apart, of which a partial sum consists, lie together in shared memory.

/// From column to column of n values.
#define COLUMN_STRIDE(n) ((n) / N_LANES + 4)

/// Eight neighbouring values, of which the first is value `at`, a multiple of 8, into columns.
DEVICE_FN void store_in_columns(f32x4 low, f32x4 high, u32 at, u32 stride, SHARED(f32) columns) {
  const f32 values[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  UNROLL for (u32 i = 0; i < 8; ++i) {
    columns[(at % N_LANES + i) * stride + at / N_LANES] = values[i];
  }
}

/// add_squares for the n values of a column, a multiple of 16: what comes next is read while some
/// is added.
DEVICE_FN f32 add_column_squares(SHARED(const f32) column, u32 n, f32 partial) {
  f32x4 values[4];
  UNROLL for (u32 i = 0; i < 4; ++i) {
    values[i] = load4(column + 4 * i);
  }
  for (u32 step = 16; step <= n; step += 16) {
    const u32 ahead = step < n ? step : 0u;
    f32x4 next[4];
    UNROLL for (u32 i = 0; i < 4; ++i) {
      next[i] = load4(column + (ahead + 4 * i));
    }
    UNROLL for (u32 i = 0; i < 4; ++i) {
      partial = fma_f32(values[i].x, values[i].x, partial);
      partial = fma_f32(values[i].y, values[i].y, partial);
      partial = fma_f32(values[i].z, values[i].z, partial);
      partial = fma_f32(values[i].w, values[i].w, partial);
      values[i] = next[i];
    }
  }
  return partial;
}

ADD_SQUARES(add_squares, SHARED)
ADD_SQUARES(add_squares_device, DEVICE)

}  // namespace hearth::backend::gpu
