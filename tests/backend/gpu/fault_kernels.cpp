#include "tests/backend/gpu/fault_kernels.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/dialect/tiles.h"

namespace hearth::backend::gpu {

KERNEL(group_sum, 256, TestParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  SHARED_ARRAY(f32, partial, 8);
  f32 sum = 0.0f;
  for (u32 i = k_thread.x; i < p.n; i += k_group_size.x) {
    sum += x[k_group.x * p.n + i];
  }
  sum = simd_sum_f32(sum);
  if (k_lane == 0) {
    partial[k_simdgroup] = sum;
  }
  group_barrier();
  const u32 n_simdgroups = k_group_size.x / 32;
  const f32 total = simd_sum_f32(k_lane < n_simdgroups ? partial[k_lane] : 0.0f);
  if (k_thread.x == 0) {
    y[k_group.x] = total;
  }
}

KERNEL(positions, 128, TestParams, BUFFER(0, u32, y)) {
  const u32 thread = k_thread.x + k_group_size.x * (k_thread.y + k_group_size.y * k_thread.z);
  const u32 group = k_group.x + k_grid_size.x * (k_group.y + k_grid_size.y * k_group.z);
  const u32 n_threads = k_group_size.x * k_group_size.y * k_group_size.z;
  y[group * n_threads + thread] = 10000 * group + 100 * k_simdgroup + k_lane;
}

KERNEL(collectives, 32, TestParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  const f32 value = x[k_lane];
  y[k_lane] = simd_sum_f32(value);
  y[32 + k_lane] = simd_max_f32(value);
  y[64 + k_lane] = f32(simd_sum_u32(k_lane));
  y[96 + k_lane] = shuffle(value, 31 - k_lane);
  y[128 + k_lane] = shuffle_xor(value, 5);
  simdgroup_barrier();
  y[160 + k_lane] = f32(shuffle(k_lane, 7u));
}

EARLY_KERNEL(early, 32, TestParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  const f32 value = simd_sum_f32(x[k_lane]);
  wait_for_kernel_before();
  y[k_lane] = value;
  y[32 + k_lane] = simd_sum_f32(x[k_lane]);
}

EARLY_KERNEL(fault_does_not_wait, 32, TestParams, BUFFER(0, f32, y)) {
  if (k_lane != 5) {
    wait_for_kernel_before();
  }
  y[k_lane] = 0.0f;
}

KERNEL(tile_product, 32, TestParams, BUFFER(0, const f32, a), BUFFER(1, const f32, b),
       BUFFER(2, f32, y)) {
  SHARED_ARRAY(f16, a_rows, 16 * 24);  // rows 24 apart
  SHARED_ARRAY(f16, b_columns, 16 * 16);
  SHARED_ARRAY(f32, product, 16 * 16);
  for (u32 i = k_lane; i < 256; i += 32) {
    a_rows[i / 16 * 24 + i % 16] = to_f16(a[i]);
    b_columns[i % 16 * 16 + i / 16] = to_f16(b[i]);
  }
  group_barrier();
  TileA tile_a;
  TileB tile_b;
  TileSum sum;
  tile_zero(sum);
  tile_load(tile_a, a_rows, 24);
  tile_load_transposed(tile_b, b_columns, 16);
  for (u32 i = 0; i < p.n; ++i) {
    tile_multiply_add(sum, tile_a, tile_b);
  }
  tile_store(product, 16, sum);
  group_barrier();
  for (u32 i = k_lane; i < 256; i += 32) {
    y[i] = product[i];
  }
}

KERNEL(fault_reads_outside, 32, TestParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  y[k_lane] = x[p.n + k_lane];  // the fault
}

KERNEL(fault_reads_before, 32, TestParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  DEVICE(const f32) before = x + (-1);
  y[k_lane] = before[k_lane];  // the fault
}

KERNEL(fault_shared_outside, 32, TestParams, BUFFER(0, f32, y)) {
  SHARED_ARRAY(f32, part, 16);
  part[k_lane] = 1.0f;  // the fault
  group_barrier();
  y[k_lane] = part[k_lane];
}

KERNEL(fault_misaligned, 32, TestParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  y[k_lane] = load4(x + k_lane).x;  // the fault
}

KERNEL(fault_unwritten_shared, 32, TestParams, BUFFER(0, f32, y)) {
  SHARED_ARRAY(f32, part, 32);
  if (k_lane != 5) {
    part[k_lane] = 1.0f;
  }
  group_barrier();
  y[k_group.x * 32 + k_lane] = part[k_lane];
}

KERNEL(fault_shared_too_large, 32, TestParams, BUFFER(0, f32, y)) {
  SHARED_ARRAY(f32, half, 4096);
  SHARED_ARRAY(f32, other, 4097);  // the fault
  half[k_lane] = 1.0f;
  other[k_lane] = 2.0f;
  y[k_lane] = half[k_lane] + other[k_lane];
}

KERNEL(fault_shared_array_of_some, 32, TestParams, BUFFER(0, f32, y)) {
  if (k_lane < 16) {
    SHARED_ARRAY(f32, first, 32);
    first[k_lane] = 1.0f;
  }
  SHARED_ARRAY(f32, second, 32);  // the fault
  y[k_lane] = second[k_lane];
}

KERNEL(fault_barrier_of_some_lanes, 64, TestParams, BUFFER(0, f32, y)) {
  if (k_lane < 16) {
    group_barrier();
  }
  y[k_thread.x] = simd_sum_f32(1.0f);  // the fault
}

KERNEL(fault_barrier_of_some_simdgroups, 64, TestParams, BUFFER(0, f32, y)) {
  if (k_simdgroup == 0) {
    group_barrier();
  }
  y[k_thread.x] = 1.0f;
}

KERNEL(fault_two_barriers, 64, TestParams, BUFFER(0, f32, y)) {
  if (k_simdgroup == 0) {  // NOLINT(bugprone-branch-clone): the place is what differs
    group_barrier();
  } else {
    group_barrier();  // the fault
  }
  y[k_thread.x] = 1.0f;
}

KERNEL(fault_early_return, 32, TestParams, BUFFER(0, f32, y)) {
  if (k_lane < 16) {
    return;
  }
  y[k_lane] = simd_sum_f32(1.0f);  // the fault
}

KERNEL(fault_two_collectives, 32, TestParams, BUFFER(0, f32, y)) {
  if (k_lane < 16) {
    y[k_lane] = simd_sum_f32(1.0f);
  } else {
    y[k_lane] = simd_max_f32(1.0f);  // the fault
  }
}

KERNEL(fault_lane_beyond_31, 32, TestParams, BUFFER(0, f32, y)) {
  y[k_lane] = shuffle(1.0f, k_lane + 1);  // the fault
}

KERNEL(fault_tile_stride, 32, TestParams, BUFFER(0, f32, y)) {
  SHARED_ARRAY(f32, product, 16 * 20);
  TileSum sum;
  tile_zero(sum);
  tile_store(product, 20, sum);  // the fault
  y[k_lane] = product[k_lane];
}

KERNEL(race_missing_barrier, 64, TestParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  SHARED_ARRAY(f32, part, 64);
  part[k_thread.x] = x[k_thread.x];
  y[k_thread.x] = part[63 - k_thread.x];
}

KERNEL(race_write_after_read, 64, TestParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  SHARED_ARRAY(f32, part, 64);
  part[k_thread.x] = x[k_thread.x];
  group_barrier();
  f32 sum = 0.0f;
  for (u32 round = 0; round < p.n; ++round) {
    sum += part[(k_thread.x + 33) % 64];
    part[k_thread.x] = sum;  // somebody may not have read the old value yet
    group_barrier();
  }
  y[k_thread.x] = sum;
}

KERNEL(race_between_groups, 32, TestParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  y[k_lane] = y[k_lane] * 0.5f + x[k_group.x * 32 + k_lane];
}

}  // namespace hearth::backend::gpu
