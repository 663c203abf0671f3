// A threadgroup prepares INPUT_GROUP_VALUES values of a row, a simdgroup one block of 256 of them,
// eight neighbours in each lane. A norm of whole rows is computed by each threadgroup of the row
// again. Bound by the latency of the norm's chains of sums.

#include "backend/gpu/kernels/columns.h"
#include "backend/gpu/kernels/strip_sums.h"

namespace hearth::backend::gpu {

EARLY_KERNEL(column_input, INPUT_THREADS, ColumnInputParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, gate),
             BUFFER(4, u32, codes), BUFFER(5, u8, digits), BUFFER(6, f32, scales),
             BUFFER(7, f32, y)) {
  SHARED_ARRAY(f32, chunk, NORM_CHUNK);
  SHARED_ARRAY(f32, inverses, INPUT_MAX_RUNS);
  const u32 row = k_group.y;
  const u32 begin = k_group.x * INPUT_GROUP_VALUES;
  const u32 n = p.input.n;
  const u32 end = min_u32(begin + INPUT_GROUP_VALUES, n);
  const u32 first = begin + LANE_VALUES * k_thread.x;  // value of the lane
  const bool has_block = first < end;
  const bool is_row = row < counts[p.input.axis];
  wait_for_kernel_before();
  if (!is_row) {
    return;
  }
  DEVICE(const f32) x_row = x + u64(row) * n;
  DEVICE(const f32) gate_row = gate + u64(row) * p.input.gate_stride;
  f32x4 low = make4(0, 0, 0, 0);
  f32x4 high = low;
  if (has_block) {
    low = load4(x_row + first);
    high = load4(x_row + first + 4);
  }
  norm_inverses(p.input, x_row, begin, end, chunk, inverses, k_thread.x);
  if (!has_block) {
    return;
  }
  if (p.input.norm_run != 0u || p.input.has_gate != 0u) {
    f32 values[LANE_VALUES] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const u32 first_run = p.input.norm_run != 0u ? begin / p.input.norm_run : 0u;
    ValuePlace place = place_of(p.input, first);
    UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
      values[i] = input_value(p.input, values[i], norm, gate_row, inverses, first_run, place);
      place = next_place(p.input, place);
    }
    low = make4(values[0], values[1], values[2], values[3]);
    high = make4(values[4], values[5], values[6], values[7]);
  }
  if (p.has_floats != 0u) {
    store4(y + u64(row) * n + first, low);
    store4(y + u64(row) * n + first + 4, high);
  }
  const u64 block = u64(row) * (n / 256) + first / 256;
  const BlockCodes block_codes = codes_of_block(low, high);
  const u64 at = block * STRIP_BLOCK_WORDS + STRIP_LANE_WORD(k_lane);
  codes[at] = block_codes.packed[0];
  codes[at + 1] = block_codes.packed[1];
  if (k_lane % 2 == 0u) {
    DEVICE(u8) own = digits + (block * STRIP_DIGIT_BYTES + k_lane / 8 * 8 + k_lane / 2 % 4);
    own[0] = u8(u32(block_codes.sum) & 63u);
    own[4] = u8(u32(block_codes.sum >> 6) & 255u);
  }
  if (k_lane == 0u) {
    scales[block] = block_codes.scale;
  }
}

}  // namespace hearth::backend::gpu
