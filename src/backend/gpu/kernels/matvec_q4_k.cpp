// A simdgroup owns two rows of the matrix and shares the activations between them in registers.
// Eight lanes share a block of 256 weights, so it takes four blocks a pass. A block is nine 16-byte
// words: the first holds all scales, and each lane loads one other: the low nibbles are 16 weights
// of one sub-block, the high nibbles those of the next. Bound by memory.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/blocks.h"
#include "backend/gpu/kernels/matvec.h"

namespace hearth::backend::gpu {

/// Four codes, in the low nibbles of the bytes of a word, times four activations.
DEVICE_FN f32 dot_nibbles(u32 codes, f32x4 x, f32 sum) {
  return dot4(make4(f32(codes & 15u), f32((codes >> 8) & 15u), f32((codes >> 16) & 15u),
                    f32((codes >> 24) & 15u)),
              x, sum);
}

KERNEL(matvec_q4_k, 64, MatvecParams, BUFFER(0, const u8, weight), BUFFER(1, const f32, x),
       BUFFER(2, f32, y)) {
  const u32 first_row = (k_group.x * MATVEC_SIMDGROUPS + k_simdgroup) * MATVEC_SIMDGROUP_ROWS;
  const u32 n_blocks = p.n_in / 256;
  const u32 pair = (k_lane & 7u) / 2;  // of sub-blocks
  const u32 part = k_lane & 1u;        // first or second 16 weights of both
  DEVICE(const f32) x_row = x + u64(k_group.y) * p.n_in;
  f32 sums[MATVEC_SIMDGROUP_ROWS] = {0.0f, 0.0f};

  for (u32 b = k_lane / 8; b < n_blocks; b += 4) {
    DEVICE(const f32) x_low = x_row + b * 256 + pair * 64 + part * 16;
    f32x4 low[4];
    f32x4 high[4];
    f32 low_sum = 0.0f;
    f32 high_sum = 0.0f;
    UNROLL for (u32 i = 0; i < 4; ++i) {
      low[i] = load4(x_low + 4 * i);
      high[i] = load4(x_low + 32 + 4 * i);
      low_sum += sum4(low[i]);
      high_sum += sum4(high[i]);
    }
    UNROLL for (u32 r = 0; r < MATVEC_SIMDGROUP_ROWS; ++r) {
      const u32 row = min_u32(first_row + r, p.n_out - 1);
      DEVICE(const u8) block = weight + u64(row * n_blocks + b) * Q4_K_BYTES;
      const u32x4 head = load4(words(block));
      const u32x4 codes = load4(words(block + 16 + pair * 32 + part * 16));
      const u32 low_scale = k_scale_and_min(head.y, head.z, head.w, 2 * pair);
      const u32 high_scale = k_scale_and_min(head.y, head.z, head.w, 2 * pair + 1);
      f32 low_dot = dot_nibbles(codes.x, low[0], 0.0f);
      low_dot = dot_nibbles(codes.y, low[1], low_dot);
      low_dot = dot_nibbles(codes.z, low[2], low_dot);
      low_dot = dot_nibbles(codes.w, low[3], low_dot);
      f32 high_dot = dot_nibbles(codes.x >> 4, high[0], 0.0f);
      high_dot = dot_nibbles(codes.y >> 4, high[1], high_dot);
      high_dot = dot_nibbles(codes.z >> 4, high[2], high_dot);
      high_dot = dot_nibbles(codes.w >> 4, high[3], high_dot);
      const f32 product = fma_f32(f32(low_scale & 63u), low_dot, f32(high_scale & 63u) * high_dot);
      const f32 offset = fma_f32(f32(low_scale >> 16), low_sum, f32(high_scale >> 16) * high_sum);
      const f32 scale = to_f32(f16_of_bits(head.x & 0xffffu));
      const f32 min_scale = to_f32(f16_of_bits(head.x >> 16));
      sums[r] = fma_f32(scale, product, fma_f32(-min_scale, offset, sums[r]));
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
