// quantize_input and float_input for many rows with a norm of whole rows: a simdgroup has a row,
// whose squares pass through shared memory 1,024 at a time, so that many rows' chains of sums run
// side by side. Then a lane takes eight neighbouring values after the other. Bound by latency.

#include "backend/gpu/kernels/input_values.h"

namespace hearth::backend::gpu {

#define INPUT_ROW_CHUNK 1024

/// n values, at most INPUT_ROW_CHUNK, to shared memory by a simdgroup: no load waits for another.
DEVICE_FN void copy_row_values(DEVICE(const f32) from, u32 n, SHARED(f32) to, u32 lane) {
  f32x4 fours[INPUT_ROW_CHUNK / 128];
  UNROLL for (u32 i = 0; i < INPUT_ROW_CHUNK / 128; ++i) {
    fours[i] = load4(from + min_u32(4 * (lane + 32 * i), n - 4u));
  }
  UNROLL for (u32 i = 0; i < INPUT_ROW_CHUNK / 128; ++i) {
    if (4 * (lane + 32 * i) < n) {
      store4(to + 4 * (lane + 32 * i), fours[i]);
    }
  }
}

/// 1 / sqrt(mean + eps) of the simdgroup's row. chunk [INPUT_ROW_CHUNK].
DEVICE_FN f32 inverse_of_row(PARAMS(InputParams) p, DEVICE(const f32) x, SHARED(f32) chunk,
                             u32 lane) {
  f32 sum = 0.0f;
  for (u32 begin = 0; begin < p.n; begin += INPUT_ROW_CHUNK) {
    const u32 n = min_u32(p.n - begin, INPUT_ROW_CHUNK);
    simdgroup_barrier();  // the chunk before has been summed
    copy_row_values(x + begin, n, chunk, lane);
    simdgroup_barrier();
    sum = add_squares(chunk, n, lane, sum);
  }
  return inverse_of_run(p, sum_lanes(sum));
}

KERNEL(input_rows, INPUT_ROWS_THREADS, InputRowsParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, gate),
       BUFFER(4, u32, codes), BUFFER(5, f32, scales), BUFFER(6, i16, sums), BUFFER(7, f32, y)) {
  SHARED_ARRAY(f32, chunks, (INPUT_ROWS_THREADS / 32 * INPUT_ROW_CHUNK));
  SHARED_ARRAY(f32, inverses, INPUT_ROWS_THREADS / 32);
  const u32 row = k_group.x * (INPUT_ROWS_THREADS / 32) + k_simdgroup;
  if (row >= counts[p.input.axis]) {
    return;
  }
  const u32 n = p.input.n;
  DEVICE(const f32) x_row = x + u64(row) * n;
  DEVICE(const f32) gate_row = gate + u64(row) * p.input.gate_stride;
  const f32 inverse =
      inverse_of_row(p.input, x_row, chunks + k_simdgroup * INPUT_ROW_CHUNK, k_lane);
  if (k_lane == 0u) {
    inverses[k_simdgroup] = inverse;
  }
  simdgroup_barrier();
  for (u32 begin = 0; begin < n; begin += 32 * LANE_VALUES) {
    const u32 first = begin + LANE_VALUES * k_lane;
    const LaneValues values =
        lane_values(p.input, x_row, norm, gate_row, inverses + k_simdgroup, 0, first, n);
    if (p.has_codes != 0u) {
      const LaneCodes mine = lane_codes(p.input, values);
      store_lane_codes(p.input, mine, row, first, n, k_lane, codes, scales, sums);
    }
    if (p.has_floats != 0u && first < n) {
      DEVICE(f32) to = y + (u64(row) * n + first);
      store4(to, make4(values.of[0], values.of[1], values.of[2], values.of[3]));
      store4(to + 4, make4(values.of[4], values.of[5], values.of[6], values.of[7]));
    }
  }
}

}  // namespace hearth::backend::gpu
