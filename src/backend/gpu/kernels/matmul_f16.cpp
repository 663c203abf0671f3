// A threadgroup computes 32 x 32 results, each of its four simdgroups a tile of 16 x 16. Steps of
// 32 along n_in go through shared memory: 2 + 2 KiB, and 4 KiB for the results. A result is a
// function of its row of x and its row of weights, whatever the number of rows.

#include "backend/gpu/kernels/matmul_f16.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/dialect/tiles.h"

namespace hearth::backend::gpu {

KERNEL(matmul_f16, 128, MatmulParams, BUFFER(0, const f16, weight), BUFFER(1, const f32, x),
       BUFFER(2, f32, y)) {
  SHARED_ARRAY(f16, x_step, 32 * 32);       // [row][k]
  SHARED_ARRAY(f16, weight_step, 32 * 32);  // [row][k]
  SHARED_ARRAY(f32, results, 32 * 32);
  const u32 first_out = k_group.x * 32;
  const u32 first_row = k_group.y * 32;
  const u32 tile_row = k_simdgroup / 2 * 16;
  const u32 tile_out = k_simdgroup % 2 * 16;
  TileSum sum;
  tile_zero(sum);

  for (u32 k0 = 0; k0 < p.n_in; k0 += 32) {
    UNROLL for (u32 n = 0; n < 8; ++n) {
      const u32 i = k_thread.x + 128 * n;
      const u32 row = i / 32;
      const u32 k = k0 + i % 32;
      x_step[i] =
          first_row + row < p.rows ? to_f16(x[u64(first_row + row) * p.n_in + k]) : to_f16(0.0f);
      weight_step[i] =
          first_out + row < p.n_out ? weight[u64(first_out + row) * p.n_in + k] : to_f16(0.0f);
    }
    group_barrier();
    UNROLL for (u32 k = 0; k < 32; k += 16) {
      TileA a;
      TileB b;
      tile_load(a, x_step + tile_row * 32 + k, 32);
      tile_load_transposed(b, weight_step + tile_out * 32 + k, 32);
      tile_multiply_add(sum, a, b);
    }
    group_barrier();
  }

  tile_store(results + tile_row * 32 + tile_out, 32, sum);
  group_barrier();
  for (u32 n = 0; n < 8; ++n) {
    const u32 i = k_thread.x + 128 * n;
    const u32 row = first_row + i / 32;
    const u32 out = first_out + i % 32;
    if (row < p.rows && out < p.n_out) {
      y[u64(row) * p.n_out + out] = results[i];
    }
  }
}

}  // namespace hearth::backend::gpu
