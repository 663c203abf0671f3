// As causal_conv.cpp, for sequences of few rows: a thread takes a channel of a sequence through all
// of its rows, with what the ring had in registers. The ring is on its way before the kernel in
// front has ended: nobody but the step before writes it. Bound by latency.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/causal_conv.h"

namespace hearth::backend::gpu {

#define FEW_TAPS 4
#define FEW_ROWS 4  // whose x is asked for at once

EARLY_KERNEL(causal_conv_few_f32, 256, CausalConvParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, weight),
             BUFFER(3, const u32, row_starts), BUFFER(4, const i32, positions),
             BUFFER(5, const i32, state_before), BUFFER(6, const i32, state_after),
             BUFFER(7, f32, rings), BUFFER(8, f32, y)) {
  const u32 sequence = k_group.y;
  const u32 channel = k_group.x * k_group_size.x + k_thread.x;
  if (sequence >= counts[2] || row_starts[sequence] >= row_starts[sequence + 1] ||
      channel >= p.channels) {
    wait_for_kernel_before();
    return;
  }
  const u32 first = row_starts[sequence];
  const u32 end = row_starts[sequence + 1];
  const u32 first_position = u32(positions[first]);
  f32 before[FEW_TAPS - 1];  // 1, 2, 3 positions before; 0 before position 0
  UNROLL for (u32 back = 1; back < FEW_TAPS; ++back) {
    before[back - 1] = 0.0f;
    if (back <= first_position) {
      const u64 place = (first_position - back) % (FEW_TAPS - 1);
      before[back - 1] =
          rings[u64(u32(state_before[first])) * p.slot_stride + place * p.channels + channel];
    }
  }
  const f32x4 taps = load4(weight + u64(channel) * FEW_TAPS);
  wait_for_kernel_before();

  for (u32 lot = first; lot < end; lot += FEW_ROWS) {
    f32 values[FEW_ROWS];
    UNROLL for (u32 i = 0; i < FEW_ROWS; ++i) {
      values[i] = x[u64(min_u32(lot + i, end - 1u)) * p.channels + channel];
    }
    UNROLL for (u32 i = 0; i < FEW_ROWS; ++i) {
      const u32 row = lot + i;
      if (row < end) {
        f32 sum = fma_f32(taps.x, before[2], 0.0f);
        sum = fma_f32(taps.y, before[1], sum);
        sum = fma_f32(taps.z, before[0], sum);
        y[u64(row) * p.channels + channel] = silu_f32(fma_f32(taps.w, values[i], sum));
        before[2] = before[1];
        before[1] = before[0];
        before[0] = values[i];
        // Otherwise the ring after the next row takes its place.
        if (row + 1 == end || state_after[row] != state_after[row + 1]) {
          const u64 ring = u64(u32(state_after[row])) * p.slot_stride + channel;
          const u32 position = first_position + (row - first);
          UNROLL for (u32 back = 0; back + 1 < FEW_TAPS; ++back) {
            // Places of positions before 0 are those that no position has taken yet.
            const u64 place = back <= position ? (position - back) % (FEW_TAPS - 1) : back;
            rings[ring + place * p.channels] = before[back];
          }
        }
      }
    }
  }
}

}  // namespace hearth::backend::gpu
