// A threadgroup takes 32 channels of a sequence and every k_grid_size.z-th eight of its rows, a
// simdgroup one of eight: a row needs nothing of the row before but its x. The first threadgroup
// has all rows that need the ring; when it has read what they need, its first simdgroup writes the
// rings, in the order of rows. Bound by memory.

#include "backend/gpu/kernels/causal_conv.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

/// The ring after `row`, of one channel.
DEVICE_FN void write_ring(PARAMS(CausalConvParams) p, DEVICE(const f32) x,
                          DEVICE(const f32) ring_before, DEVICE(f32) ring_after, u32 channel,
                          u32 first, u32 row, u32 first_position) {
  const u32 ring_rows = p.taps - 1u;
  for (u32 back = 0; back < ring_rows; ++back) {
    f32 value = 0.0f;
    const u32 position = first_position + (row - first) - back;
    const bool is_there = back <= first_position + (row - first);
    if (back <= row - first) {
      value = x[u64(row - back) * p.channels + channel];
    } else if (is_there) {
      value = ring_before[u64(position % ring_rows) * p.channels];
    }
    // Places of positions before 0 are those that no position has taken yet.
    const u32 place = is_there ? position % ring_rows : back;
    ring_after[u64(place) * p.channels] = value;
  }
}

#define CONV_RUN 16u  // neighbouring rows of a simdgroup
#define CONV_TAPS 4u  // of layers whose runs keep what they have read

/// n rows of one channel; `x` begins CONV_TAPS - 1 rows before.
DEVICE_FN void convolve_run(PARAMS(CausalConvParams) p, DEVICE(const f32) x,
                            DEVICE(const f32) weight, u32 n, DEVICE(f32) y) {
  const f32x4 w = load4(weight);
  f32 first = x[0];
  f32 second = x[p.channels];
  f32 third = x[2 * u64(p.channels)];
  UNROLL for (u32 begin = 0; begin < CONV_RUN; begin += 4) {
    f32 values[4];
    UNROLL for (u32 i = 0; i < 4; ++i) {
      values[i] = x[u64(min_u32(begin + i, n - 1u) + 3u) * p.channels];
    }
    UNROLL for (u32 i = 0; i < 4; ++i) {
      const f32 sum = fma_f32(w.w, values[i],
                              fma_f32(w.z, third, fma_f32(w.y, second, fma_f32(w.x, first, 0.0f))));
      if (begin + i < n) {
        y[u64(begin + i) * p.channels] = silu_f32(sum);
      }
      first = second;
      second = third;
      third = values[i];
    }
  }
}

EARLY_KERNEL(causal_conv_f32, 256, CausalConvParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, weight),
             BUFFER(3, const u32, row_starts), BUFFER(4, const i32, positions),
             BUFFER(5, const i32, state_before), BUFFER(6, const i32, state_after),
             BUFFER(7, f32, rings), BUFFER(8, f32, y)) {
  const u32 sequence = k_group.y;
  if (sequence >= counts[2] || row_starts[sequence] >= row_starts[sequence + 1]) {
    wait_for_kernel_before();
    return;
  }
  const u32 first = row_starts[sequence];
  const u32 end = row_starts[sequence + 1];
  const u32 channel = k_group.x * CAUSAL_CONV_CHANNELS + k_lane;
  const bool is_channel = channel < p.channels;
  const u32 ring_rows = p.taps - 1u;
  const u32 first_position = u32(positions[first]);
  const u64 slot_before = u64(u32(state_before[first]));
  // Of rows before `first`, ring_rows are in the ring; positions before 0 are zero.
  DEVICE(f32) ring_before = rings + (slot_before * p.slot_stride + channel);

  // On their way while the kernel in front ends: what the step before has left, and weights.
  if (is_channel && k_simdgroup < ring_rows) {
    prefetch(ring_before + u64(k_simdgroup) * p.channels);
    prefetch(weight + u64(channel) * p.taps);
  }
  wait_for_kernel_before();

  // The first rows, which all belong to the first threadgroup, then runs of rows.
  const u32 n_simdgroups = k_group_size.x / 32;
  const u32 first_run = min_u32(first + max_u32(n_simdgroups, ring_rows), end);
  for (u32 row = first + k_simdgroup; k_group.z == 0u && is_channel && row < first_run;
       row += n_simdgroups) {
    f32 sum = 0.0f;
    for (u32 tap = 0; tap < p.taps; ++tap) {
      const u32 back = ring_rows - tap;
      f32 value = 0.0f;
      if (back <= row - first) {
        value = x[u64(row - back) * p.channels + channel];
      } else if (back <= first_position + (row - first)) {
        const u32 position = first_position + (row - first) - back;
        value = ring_before[u64(position % ring_rows) * p.channels];
      }
      sum = fma_f32(weight[u64(channel) * p.taps + tap], value, sum);
    }
    y[u64(row) * p.channels + channel] = silu_f32(sum);
  }
  for (u32 begin = first_run + (k_group.z * n_simdgroups + k_simdgroup) * CONV_RUN;
       is_channel && begin < end; begin += k_grid_size.z * n_simdgroups * CONV_RUN) {
    const u32 n = min_u32(end - begin, CONV_RUN);
    DEVICE(f32) run_y = y + (u64(begin) * p.channels + channel);
    if (p.taps == CONV_TAPS) {
      convolve_run(p, x + (u64(begin - 3u) * p.channels + channel),
                   weight + u64(channel) * CONV_TAPS, n, run_y);
      continue;
    }
    for (u32 i = 0; i < n; ++i) {
      f32 sum = 0.0f;
      for (u32 tap = 0; tap < p.taps; ++tap) {
        const u64 back = ring_rows - tap;
        sum = fma_f32(weight[u64(channel) * p.taps + tap],
                      (x + channel)[(begin + i - back) * p.channels], sum);
      }
      run_y[u64(i) * p.channels] = silu_f32(sum);
    }
  }
  group_barrier_device();
  if (k_simdgroup != 0 || k_group.z != 0) {
    return;
  }
  // A position always has the same place, so what is written over the ring before is never needed
  // by a later row.
  for (u32 begin = first; begin < end; begin += 32) {
    const u32 own = begin + k_lane;
    // The ring after the next row would take the place of one that is not kept.
    bool is_kept = own < end && (own + 1 == end || state_after[own] != state_after[own + 1]);
    for (u32 row = simd_min_u32(is_kept ? own : end); row < end;
         row = simd_min_u32(is_kept ? own : end)) {
      if (is_channel) {
        write_ring(p, x, ring_before,
                   rings + (u64(u32(state_after[row])) * p.slot_stride + channel), channel, first,
                   row, first_position);
      }
      is_kept = is_kept && own != row;
    }
  }
}

}  // namespace hearth::backend::gpu
