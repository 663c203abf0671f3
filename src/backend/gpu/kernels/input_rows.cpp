// quantize_input and float_input for many rows with a norm of whole rows: a simdgroup has a row,
// whose squares pass through shared memory 1,024 at a time, so that many rows' chains of sums run
// side by side. Then a lane takes eight neighbouring values after the other. Bound by latency.

#include "backend/gpu/kernels/input_values.h"

namespace hearth::backend::gpu {

#define INPUT_ROW_CHUNK 1024

/// 1 / sqrt(mean + eps) of the simdgroup's row. chunk [INPUT_ROW_CHUNK].
DEVICE_FN f32 inverse_of_row(PARAMS(InputParams) p, DEVICE(const f32) x, SHARED(f32) chunk,
                             u32 lane) {
  f32 sum = 0.0f;
  for (u32 begin = 0; begin < p.n; begin += INPUT_ROW_CHUNK) {
    const u32 n = min_u32(p.n - begin, INPUT_ROW_CHUNK);
    simdgroup_barrier();  // the chunk before has been summed
    copy_values(x + begin, n, chunk, lane, 32);
    simdgroup_barrier();
    sum = add_squares(chunk, n, lane, sum);
  }
  return inverse_of_run(p, sum_lanes(sum));
}

KERNEL(quantize_rows, INPUT_ROWS_THREADS, InputParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, gate),
       BUFFER(4, u32, codes), BUFFER(5, f32, scales), BUFFER(6, i16, sums)) {
  SHARED_ARRAY(f32, chunks, (INPUT_ROWS_THREADS / 32 * INPUT_ROW_CHUNK));
  SHARED_ARRAY(f32, inverses, INPUT_ROWS_THREADS / 32);
  const u32 row = k_group.x * (INPUT_ROWS_THREADS / 32) + k_simdgroup;
  if (row >= counts[p.axis]) {
    return;
  }
  DEVICE(const f32) x_row = x + u64(row) * p.n;
  DEVICE(const f32) gate_row = gate + u64(row) * p.gate_stride;
  const f32 inverse = inverse_of_row(p, x_row, chunks + k_simdgroup * INPUT_ROW_CHUNK, k_lane);
  if (k_lane == 0u) {
    inverses[k_simdgroup] = inverse;
  }
  simdgroup_barrier();
  for (u32 begin = 0; begin < p.n; begin += 32 * LANE_VALUES) {
    const u32 first = begin + LANE_VALUES * k_lane;
    const LaneCodes lane =
        lane_codes(p, x_row, norm, gate_row, inverses + k_simdgroup, 0, first, p.n);
    store_lane_codes(p, lane, row, first, p.n, k_lane, codes, scales, sums);
  }
}

KERNEL(float_rows, INPUT_ROWS_THREADS, InputParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, gate),
       BUFFER(4, f32, y)) {
  SHARED_ARRAY(f32, chunks, (INPUT_ROWS_THREADS / 32 * INPUT_ROW_CHUNK));
  SHARED_ARRAY(f32, inverses, INPUT_ROWS_THREADS / 32);
  const u32 row = k_group.x * (INPUT_ROWS_THREADS / 32) + k_simdgroup;
  if (row >= counts[p.axis]) {
    return;
  }
  DEVICE(const f32) x_row = x + u64(row) * p.n;
  DEVICE(const f32) gate_row = gate + u64(row) * p.gate_stride;
  const f32 inverse = inverse_of_row(p, x_row, chunks + k_simdgroup * INPUT_ROW_CHUNK, k_lane);
  if (k_lane == 0u) {
    inverses[k_simdgroup] = inverse;
  }
  simdgroup_barrier();
  for (u32 i = k_lane; i < p.n; i += 32) {
    y[u64(row) * p.n + i] =
        input_value(p, x_row[i], norm, gate_row, inverses + k_simdgroup, 0, place_of(p, i));
  }
}

}  // namespace hearth::backend::gpu
