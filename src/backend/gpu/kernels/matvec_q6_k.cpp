// A simdgroup owns two rows of the matrix. All 32 lanes share a block of 256 weights, which is
// aligned to two bytes only: a lane takes two neighbours l, l + 1 of each quarter of one half.
// Bound by memory.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/blocks.h"
#include "backend/gpu/kernels/matvec.h"

namespace hearth::backend::gpu {

/// Two codes times two activations. `low` has four bits of each in its bytes, `high` two bits.
DEVICE_FN f32 dot_six_bits(u32 low, u32 high, f32 x0, f32 x1) {
  const i32 first = i32((low & 15u) | ((high & 3u) << 4)) - 32;
  const i32 second = i32(((low >> 8) & 15u) | (((high >> 8) & 3u) << 4)) - 32;
  return fma_f32(f32(first), x0, f32(second) * x1);
}

KERNEL(matvec_q6_k, 64, MatvecParams, BUFFER(0, const u8, weight), BUFFER(1, const f32, x),
       BUFFER(2, f32, y)) {
  const u32 first_row = (k_group.x * MATVEC_SIMDGROUPS + k_simdgroup) * MATVEC_SIMDGROUP_ROWS;
  const u32 n_blocks = p.n_in / 256;
  const u32 half_block = k_lane / 16;
  const u32 l = 2 * (k_lane % 16);
  DEVICE(const f32) x_row = x + u64(k_group.y) * p.n_in;
  f32 sums[MATVEC_SIMDGROUP_ROWS] = {0.0f, 0.0f};

  for (u32 b = 0; b < n_blocks; ++b) {
    DEVICE(const f32) x_half = x_row + b * 256 + half_block * 128 + l;
    f32 x0[4];
    f32 x1[4];
    UNROLL for (u32 quarter = 0; quarter < 4; ++quarter) {
      x0[quarter] = x_half[32 * quarter];
      x1[quarter] = x_half[32 * quarter + 1];
    }
    UNROLL for (u32 r = 0; r < MATVEC_SIMDGROUP_ROWS; ++r) {
      const u32 row = min_u32(first_row + r, p.n_out - 1);
      DEVICE(const u8) block = weight + u64(row * n_blocks + b) * Q6_K_BYTES;
      const u32 low0 = halfwords(block + 64 * half_block + l)[0];
      const u32 low1 = halfwords(block + 64 * half_block + 32 + l)[0];
      const u32 high = halfwords(block + 128 + 32 * half_block + l)[0];
      DEVICE(const u8) scales = block + 192 + 8 * half_block + l / 16;
      f32 sum = signed_byte(scales[0]) * dot_six_bits(low0, high, x0[0], x1[0]);
      sum = fma_f32(signed_byte(scales[2]), dot_six_bits(low1, high >> 2, x0[1], x1[1]), sum);
      sum = fma_f32(signed_byte(scales[4]), dot_six_bits(low0 >> 4, high >> 4, x0[2], x1[2]), sum);
      sum = fma_f32(signed_byte(scales[6]), dot_six_bits(low1 >> 4, high >> 6, x0[3], x1[3]), sum);
      sums[r] = fma_f32(half_at(block + 208), sum, sums[r]);
    }
  }
  UNROLL for (u32 r = 0; r < MATVEC_SIMDGROUP_ROWS; ++r) {
    const f32 total = simd_sum_f32(sums[r]);
    if (k_lane == 0 && first_row + r < p.n_out) {
      y[u64(k_group.y) * p.n_out + first_row + r] = total;
    }
  }
}

}  // namespace hearth::backend::gpu
