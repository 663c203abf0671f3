// A threadgroup per part of a row. The key of the last that stays is found bit by bit: each bit is
// one count of the keys that are not below it.

#include "backend/gpu/kernels/top_k.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define TOP_K_EACH (TOP_K_PART / TOP_K_THREADS)  // neighbouring entries of a thread
#define NO_COLUMN (-1.0f)

/// Ordered as values are, with a single zero; all that is no number or plus infinity is the
/// largest, and 0 is left for what is not there.
DEVICE_FN u32 top_k_key(f32 value) {
  const u32 bits = bits_of_f32(value);
  if (is_nan_f32(value) || bits == 0x7f800000u) {
    return 0xffffffffu;
  }
  if ((bits & 0x7fffffffu) == 0) {
    return 0x80000000u;
  }
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/// The sum of `value` over lower threads. `sums` is a word for each simdgroup.
DEVICE_FN u32 sum_of_lower_threads(u32 value, SHARED(u32) sums, u32 lane, u32 simdgroup) {
  const u32 up_to_here = sum_until(value, lane);
  if (lane == 31) {
    sums[simdgroup] = up_to_here;
  }
  group_barrier();
  const u32 of_simdgroups = simd_sum_u32(lane < simdgroup ? sums[lane] : 0);
  return of_simdgroups + up_to_here - value;
}

KERNEL(top_k_f32, TOP_K_THREADS, TopKParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, f32, y)) {
  SHARED_ARRAY(u32, sums, 2 * TOP_K_THREADS / 32);
  const u32 row = k_group.y;
  if (row >= counts[p.axis]) {
    return;
  }
  const u32 width = p.are_pairs != 0 ? 2 : 1;
  DEVICE(const f32) row_x = x + u64(row) * p.n * width;
  const u32 first = k_group.x * TOP_K_PART + k_thread.x * TOP_K_EACH;
  u32 keys[TOP_K_EACH];
  UNROLL for (u32 i = 0; i < TOP_K_EACH; ++i) {
    const u32 at = first + i;
    const bool is_there = at < p.n_entries && (p.are_pairs == 0 || row_x[u64(at) * 2] != NO_COLUMN);
    keys[i] = is_there ? top_k_key(row_x[u64(at) * width + width - 1]) : 0;
  }

  u32 last_key = 0;  // the largest that k keys are not below
  for (u32 bit = 32; bit > 0; --bit) {
    const u32 key = last_key | (1u << (bit - 1));
    u32 count = 0;
    UNROLL for (u32 i = 0; i < TOP_K_EACH; ++i) {
      count += keys[i] >= key ? 1 : 0;
    }
    count = simd_sum_u32(count);
    SHARED(u32) of_bit = sums + (bit % 2) * (TOP_K_THREADS / 32);  // the other one may be read yet
    if (k_lane == 0) {
      of_bit[k_simdgroup] = count;
    }
    group_barrier();
    if (simd_sum_u32(of_bit[k_lane]) >= p.k) {
      last_key = key;
    }
  }

  u32 n_above = 0;
  u32 n_equal = 0;
  UNROLL for (u32 i = 0; i < TOP_K_EACH; ++i) {
    n_above += keys[i] > last_key ? 1 : 0;
    n_equal += keys[i] == last_key ? 1 : 0;
  }
  group_barrier();
  // Both in one word: there are fewer than 1 << 16 keys.
  const u32 before = sum_of_lower_threads(n_above + (n_equal << 16), sums, k_lane, k_simdgroup);
  SHARED(u32) total = sums + TOP_K_THREADS / 32;
  if (k_thread.x == TOP_K_THREADS - 1) {
    total[0] = (before & 0xffffu) + n_above;
  }
  group_barrier();
  const u32 n_of_equal = p.k - total[0];  // that stay: the first ones
  u32 equal_before = before >> 16;
  u32 to = (before & 0xffffu) + min_u32(equal_before, n_of_equal);
  DEVICE(f32) part_y = y + (u64(row) * p.n_parts + k_group.x) * p.k * 2;
  UNROLL for (u32 i = 0; i < TOP_K_EACH; ++i) {
    const u32 at = first + i;
    bool stays = keys[i] > last_key;
    if (keys[i] == last_key) {
      stays = equal_before < n_of_equal;
      equal_before += 1;
    }
    if (stays) {
      const bool is_there = keys[i] != 0;
      part_y[2 * to] = !is_there ? NO_COLUMN : p.are_pairs != 0 ? row_x[u64(at) * 2] : f32(at);
      part_y[2 * to + 1] = is_there ? row_x[u64(at) * width + width - 1] : 0.0f;
      to += 1;
    }
  }
}

}  // namespace hearth::backend::gpu
