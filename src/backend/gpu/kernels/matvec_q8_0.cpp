// A simdgroup owns two rows of the matrix. Eight lanes share a block of 32 weights, which is
// aligned to two bytes only: a lane takes four of them, in two halfwords. Bound by memory.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/blocks.h"
#include "backend/gpu/kernels/matvec.h"

namespace hearth::backend::gpu {

KERNEL(matvec_q8_0, 64, MatvecParams, BUFFER(0, const u8, weight), BUFFER(1, const f32, x),
       BUFFER(2, f32, y)) {
  const u32 first_row = (k_group.x * MATVEC_SIMDGROUPS + k_simdgroup) * MATVEC_SIMDGROUP_ROWS;
  const u32 n_blocks = p.n_in / 32;
  const u32 first = 4 * (k_lane & 7u);  // weight of the block
  DEVICE(const f32) x_row = x + u64(k_group.y) * p.n_in;
  f32 sums[MATVEC_SIMDGROUP_ROWS] = {0.0f, 0.0f};

  for (u32 b = k_lane / 8; b < n_blocks; b += 4) {
    const f32x4 values = load4(x_row + b * 32 + first);
    UNROLL for (u32 r = 0; r < MATVEC_SIMDGROUP_ROWS; ++r) {
      const u32 row = min_u32(first_row + r, p.n_out - 1);
      DEVICE(const u8) block = weight + u64(row * n_blocks + b) * Q8_0_BYTES;
      const u32 low = halfwords(block + 2 + first)[0];
      const u32 high = halfwords(block + 4 + first)[0];
      const f32x4 codes =
          make4(signed_byte(low), signed_byte(low >> 8), signed_byte(high), signed_byte(high >> 8));
      sums[r] = fma_f32(half_at(block), dot4(codes, values, 0.0f), sums[r]);
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
