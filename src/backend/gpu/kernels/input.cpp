// A threadgroup prepares INPUT_GROUP_VALUES values of a row, a lane eight neighbours of them, so
// that a simdgroup has one block of 256 values or eight of 32. A norm of whole rows is computed
// by each threadgroup of the row again. Bound by the latency of the norm's chains of sums for few
// rows, then by memory.

#include "backend/gpu/kernels/input_values.h"

namespace hearth::backend::gpu {

KERNEL(quantize_input, INPUT_THREADS, InputParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, gate),
       BUFFER(4, u32, codes), BUFFER(5, f32, scales), BUFFER(6, i16, sums)) {
  SHARED_ARRAY(f32, chunk, NORM_CHUNK);
  SHARED_ARRAY(f32, inverses, INPUT_MAX_RUNS);
  const u32 row = k_group.y;
  const u32 begin = k_group.x * INPUT_GROUP_VALUES;
  if (row >= counts[p.axis]) {
    return;
  }
  DEVICE(const f32) x_row = x + u64(row) * p.n;
  DEVICE(const f32) gate_row = gate + u64(row) * p.gate_stride;
  const u32 end = min_u32(begin + INPUT_GROUP_VALUES, p.n);
  norm_inverses(p, x_row, begin, end, chunk, inverses, k_thread.x);
  const u32 first_run = p.norm_run != 0u ? begin / p.norm_run : 0u;

  const u32 first = begin + LANE_VALUES * k_thread.x;  // value of the lane
  const LaneValues values = lane_values(p, x_row, norm, gate_row, inverses, first_run, first, end);
  const LaneCodes lane = lane_codes(p, values);
  store_lane_codes(p, lane, row, first, end, k_lane, codes, scales, sums);
}

KERNEL(float_input, INPUT_THREADS, InputParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, gate),
       BUFFER(4, f32, y)) {
  SHARED_ARRAY(f32, chunk, NORM_CHUNK);
  SHARED_ARRAY(f32, inverses, INPUT_MAX_RUNS);
  const u32 row = k_group.y;
  const u32 begin = k_group.x * INPUT_GROUP_VALUES;
  if (row >= counts[p.axis]) {
    return;
  }
  DEVICE(const f32) x_row = x + u64(row) * p.n;
  DEVICE(const f32) gate_row = gate + u64(row) * p.gate_stride;
  const u32 end = min_u32(begin + INPUT_GROUP_VALUES, p.n);
  norm_inverses(p, x_row, begin, end, chunk, inverses, k_thread.x);
  const u32 first_run = p.norm_run != 0u ? begin / p.norm_run : 0u;
  for (u32 i = begin + k_thread.x; i < end; i += INPUT_THREADS) {
    y[u64(row) * p.n + i] =
        input_value(p, x_row[i], norm, gate_row, inverses, first_run, place_of(p, i));
  }
}

}  // namespace hearth::backend::gpu
