// A threadgroup per part of a row, then a simdgroup per row over its parts. Bound by memory.

#include "backend/gpu/kernels/argmax.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

/// A logit with its column; ARGMAX_NAN stands for a NaN and wins against everything.
struct Candidate {
  f32 value;
  u32 column;
};

DEVICE_FN Candidate better_candidate(Candidate a, Candidate b) {
  if (a.column == ARGMAX_NAN || b.column == ARGMAX_NAN) {
    a.column = ARGMAX_NAN;
    return a;
  }
  return b.value > a.value || (b.value == a.value && b.column < a.column) ? b : a;
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

KERNEL(argmax_part_f32, 256, ArgmaxParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, logits), BUFFER(2, u32, parts)) {
  SHARED_ARRAY(f32, best_values, 8);  // per simdgroup
  SHARED_ARRAY(u32, best_columns, 8);
  const u32 row = k_group.y;
  if (row >= counts[1]) {
    return;
  }
  DEVICE(const f32) row_logits = logits + u64(row) * p.n;
  const u32 first = k_group.x * ARGMAX_PART;
  const u32 end = min_u32(first + ARGMAX_PART, p.n);

  Candidate best;
  best.value = row_logits[first];
  best.column = is_nan_f32(best.value) ? ARGMAX_NAN : first;
  for (u32 i = first + k_thread.x; i < end; i += k_group_size.x) {
    Candidate next;
    next.value = row_logits[i];
    next.column = is_nan_f32(next.value) ? ARGMAX_NAN : i;
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
    part[0] = bits_of_f32(best.value);
    part[1] = best.column;
  }
}

KERNEL(argmax_f32, 32, ArgmaxParams, BUFFER(0, const u32, counts), BUFFER(1, const u32, parts),
       BUFFER(2, u32, columns)) {
  const u32 row = k_group.x;
  if (row >= counts[1]) {
    return;
  }
  DEVICE(const u32) row_parts = parts + 2 * u64(row) * p.n_parts;
  Candidate best;
  best.value = f32_of_bits(row_parts[0]);
  best.column = row_parts[1];
  for (u32 i = k_lane; i < p.n_parts; i += 32) {
    Candidate next;
    next.value = f32_of_bits(row_parts[2 * i]);
    next.column = row_parts[2 * i + 1];
    best = better_candidate(best, next);
  }
  best = best_of_lanes(best);
  if (k_lane == 0) {
    columns[row] = best.column;
  }
}

}  // namespace hearth::backend::gpu
