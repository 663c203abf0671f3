// A threadgroup prepares INPUT_GROUP_VALUES values of a row, a lane eight neighbours of them, so
// that a simdgroup has one block of 256 values or eight of 32. A norm of whole rows is computed
// by each threadgroup of the row again. Bound by the latency of the norm's chains of sums for few
// rows, then by memory.

#include "backend/gpu/kernels/input.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define NORM_CHUNK 4096     // values of a run that pass through shared memory at once
#define INPUT_MAX_RUNS 258  // in the values of a threadgroup, if runs have eight values or more
#define LANE_VALUES 8

DEVICE_FN f32 inverse_of_run(PARAMS(InputParams) p, f32 sum_of_squares) {
  return 1.0f / sqrt_f32(sum_of_squares / f32(p.norm_run) + p.eps);
}

/// One run, the whole row: chunks of it pass through shared memory, because sixteen lanes alone
/// would wait for each other's loads.
DEVICE_FN void norm_row(PARAMS(InputParams) p, DEVICE(const f32) x, SHARED(f32) chunk,
                        SHARED(f32) inverses, u32 thread_index) {
  f32 sum = 0.0f;
  for (u32 begin = 0; begin < p.n; begin += NORM_CHUNK) {
    const u32 n = min_u32(p.n - begin, NORM_CHUNK);
    group_barrier();  // the chunk before has been summed
    for (u32 i = thread_index; i < n; i += INPUT_THREADS) {
      chunk[i] = x[begin + i];
    }
    group_barrier();
    if (thread_index < N_LANES) {
      sum = add_squares(chunk, n, thread_index, sum);
    }
  }
  sum = sum_lanes(sum);
  if (thread_index == 0u) {
    inverses[0] = inverse_of_run(p, sum);
  }
}

/// Runs [first, first + n), sixteen at a time.
DEVICE_FN void norm_runs(PARAMS(InputParams) p, DEVICE(const f32) x, u32 first, u32 n,
                         SHARED(f32) inverses, u32 thread_index) {
  for (u32 begin = 0; begin < n; begin += INPUT_THREADS / N_LANES) {
    const u32 run = begin + thread_index / N_LANES;
    f32 sum = 0.0f;
    if (run < n) {
      DEVICE(const f32) values = x + u64(first + run) * p.norm_run;
      for (u32 i = thread_index % N_LANES; i < p.norm_run; i += N_LANES) {
        sum = fma_f32(values[i], values[i], sum);
      }
    }
    sum = sum_lanes(sum);
    if (run < n && thread_index % N_LANES == 0u) {
      inverses[run] = inverse_of_run(p, sum);
    }
  }
}

/// 1 / sqrt(mean + eps) of every run that has values of [begin, end).
DEVICE_FN void norm_inverses(PARAMS(InputParams) p, DEVICE(const f32) x, u32 begin, u32 end,
                             SHARED(f32) chunk, SHARED(f32) inverses, u32 thread_index) {
  if (p.norm_run == p.n) {
    norm_row(p, x, chunk, inverses, thread_index);
  } else if (p.norm_run != 0u) {
    const u32 first = begin / p.norm_run;
    norm_runs(p, x, first, (end - 1u) / p.norm_run - first + 1u, inverses, thread_index);
  }
  group_barrier();
}

/// Value i of a row.
DEVICE_FN f32 input_value(PARAMS(InputParams) p, DEVICE(const f32) x, DEVICE(const f32) norm,
                          DEVICE(const f32) gate, SHARED(const f32) inverses, u32 first_run,
                          u32 i) {
  f32 value = x[i];
  if (p.norm_run == p.n) {  // what would come out below, without divisions
    value = value * inverses[0] * norm[i];
  } else if (p.norm_run != 0u) {
    value = value * inverses[i / p.norm_run - first_run] * norm[i % p.norm_run];
  }
  if (p.has_gate != 0u) {
    const u32 column = p.width == p.n ? i : i / p.width * p.period + i % p.width;
    value = value * activate_f32(p.activation, gate[p.start + column]);
  }
  return value;
}

/// What a block multiplies its values with; its codes are 0 if that is 0.
struct BlockScale {
  f32 scale;
  f32 inverse;
};

/// From the bits of the largest magnitude: infinities and NaN are above all numbers.
DEVICE_FN BlockScale block_scale(u32 magnitude_bits) {
  BlockScale result = {0.0f, 0.0f};
  if (magnitude_bits >= 0x7f800000u) {
    result.scale = f32_of_bits(0x7fc00000u);
  } else if (magnitude_bits >= 0x03800000u) {  // 2^-120, quant::smallest_activation
    result.scale = f32_of_bits(magnitude_bits) / 127.0f;
    result.inverse = 127.0f / f32_of_bits(magnitude_bits);
  }
  return result;
}

/// Rounded to the nearest integer, ties to even, by adding 1.5 * 2^23.
DEVICE_FN i32 code_of(f32 value, f32 inverse) {
  const f32 rounding_shift = 12582912.0f;
  const f32 rounded = (value * inverse + rounding_shift) - rounding_shift;
  return i32(rounded);
}

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
  const u64 row_begin = u64(row) * p.n;
  DEVICE(const f32) x_row = x + row_begin;
  DEVICE(const f32) gate_row = gate + u64(row) * p.gate_stride;
  const u32 end = min_u32(begin + INPUT_GROUP_VALUES, p.n);
  norm_inverses(p, x_row, begin, end, chunk, inverses, k_thread.x);
  const u32 first_run = p.norm_run != 0u ? begin / p.norm_run : 0u;

  const u32 first = begin + LANE_VALUES * k_thread.x;  // value of the lane
  f32 values[LANE_VALUES];
  u32 magnitude = 0;
  UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
    values[i] = 0.0f;
    if (first < end) {
      values[i] = input_value(p, x_row, norm, gate_row, inverses, first_run, first + i);
    }
    magnitude = max_u32(magnitude, bits_of_f32(values[i]) & 0x7fffffffu);
  }
  for (u32 distance = 1; distance < p.block / LANE_VALUES; distance *= 2) {
    magnitude = max_u32(magnitude, shuffle_xor(magnitude, distance));
  }
  const BlockScale scale = block_scale(magnitude);
  u32 packed[2] = {0, 0};
  i32 sum = 0;
  if (scale.inverse != 0.0f) {  // 0 * NaN is no code
    UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
      const i32 code = code_of(values[i], scale.inverse);
      packed[i / 4] |= (u32(code) & 255u) << (8 * (i % 4));
      sum += code;
    }
  }
  sum += i32(shuffle_xor(u32(sum), 1));
  if (first < end) {
    const u64 at = row_begin + first;
    codes[at / 4] = packed[0];
    codes[at / 4 + 1u] = packed[1];
    if (k_lane % 2 == 0u) {
      sums[at / 16] = i16(sum);
    }
    if (first % p.block == 0u) {
      scales[u64(row) * (p.n / p.block) + first / p.block] = scale.scale;
    }
  }
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
    y[u64(row) * p.n + i] = input_value(p, x_row, norm, gate_row, inverses, first_run, i);
  }
}

}  // namespace hearth::backend::gpu
