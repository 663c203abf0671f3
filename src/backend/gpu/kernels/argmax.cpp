// A threadgroup per part of a row, then a simdgroup per row over its parts. Bound by memory.

#include "backend/gpu/kernels/argmax.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

/// A value with its column.
struct Candidate {
  f32 value;
  u32 column;
};

/// Neither NaN nor infinite upwards. By bits, as is_nan_f32.
DEVICE_FN bool is_below_infinity(f32 x) {
  return !is_nan_f32(x) && bits_of_f32(x) != 0x7f800000u;
}

/// Of two that are no numbers the lower column, of one that one; of numbers the larger, then the
/// lower column.
DEVICE_FN Candidate better_candidate(Candidate a, Candidate b) {
  const bool is_a = is_below_infinity(a.value);
  const bool is_b = is_below_infinity(b.value);
  const bool is_lower = b.column < a.column;
  if (is_a && is_b) {
    return b.value > a.value || (b.value == a.value && is_lower) ? b : a;
  }
  return is_a || (!is_b && is_lower) ? b : a;
}

/// The best of all lanes.
DEVICE_FN Candidate best_of_lanes(Candidate mine) {
  for (u32 distance = 16; distance > 0; distance /= 2) {
    Candidate other;
    other.value = shuffle_xor(mine.value, distance);
    other.column = shuffle_xor(mine.column, distance);
    mine = better_candidate(mine, other);
  }
  return mine;
}

KERNEL(argmax_part_f32, 256, ArgmaxParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, u32, parts)) {
  SHARED_ARRAY(f32, best_values, 8);  // per simdgroup
  SHARED_ARRAY(u32, best_columns, 8);
  const u32 row = k_group.y;
  if (row >= counts[p.axis]) {
    return;
  }
  DEVICE(const f32) row_x = x + u64(row) * p.n;
  const u32 first = k_group.x * ARGMAX_PART;
  const u32 end = min_u32(first + ARGMAX_PART, p.n_columns);

  Candidate best;
  best.value = row_x[first];
  best.column = first;
  for (u32 i = first + k_thread.x; i < end; i += k_group_size.x) {
    Candidate next;
    next.value = row_x[i];
    next.column = i;
    best = better_candidate(best, next);
  }
  best = best_of_lanes(best);
  if (k_lane == 0) {
    best_values[k_simdgroup] = best.value;
    best_columns[k_simdgroup] = best.column;
  }
  group_barrier();
  best.value = best_values[k_lane % 8];
  best.column = best_columns[k_lane % 8];
  best = best_of_lanes(best);
  if (k_thread.x == 0) {
    DEVICE(u32) part = parts + 2 * (u64(row) * p.n_parts + k_group.x);
    part[0] = best.column;
    part[1] = bits_of_f32(best.value);
  }
}

KERNEL(argmax_f32, 32, ArgmaxParams, BUFFER(0, const u32, counts), BUFFER(1, const u32, parts),
       BUFFER(2, f32, y), BUFFER(3, u32, chosen)) {
  const u32 row = k_group.x;
  if (row >= counts[p.axis]) {
    return;
  }
  DEVICE(const u32) row_parts = parts + 2 * u64(row) * p.n_parts;
  Candidate best;
  best.column = row_parts[0];
  best.value = f32_of_bits(row_parts[1]);
  for (u32 i = k_lane; i < p.n_parts; i += 32) {
    Candidate next;
    next.column = row_parts[2 * i];
    next.value = f32_of_bits(row_parts[2 * i + 1]);
    best = better_candidate(best, next);
  }
  best = best_of_lanes(best);
  if (k_lane == 0) {
    y[2 * row] = f32(best.column);
    y[2 * row + 1] = best.value;
    chosen[row] = best.column;
  }
}

}  // namespace hearth::backend::gpu
