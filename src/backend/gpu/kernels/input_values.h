#pragma once
/// Values of a row on their way into a product: normed, gated, quantized (kernels/input.h).

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/input.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define NORM_CHUNK 2048     // values of a run that pass through shared memory at once
#define INPUT_MAX_RUNS 258  // in the values of a threadgroup, if runs have eight values or more
#define LANE_VALUES 8

DEVICE_FN f32 inverse_of_run(PARAMS(InputParams) p, f32 sum_of_squares) {
  return 1.0f / sqrt_f32(sum_of_squares / f32(p.norm_run) + p.eps);
}

/// n values, a multiple of 8, to shared memory: eight for each thread, so that one load waits for
/// no other.
DEVICE_FN void copy_values(DEVICE(const f32) from, u32 n, SHARED(f32) to, u32 thread_index,
                           u32 n_threads) {
  for (u32 i = 8 * thread_index; i < n; i += 8 * n_threads) {
    const f32x4 low = load4(from + i);
    const f32x4 high = load4(from + i + 4);
    store4(to + i, low);
    store4(to + i + 4, high);
  }
}

/// One run, the whole row: chunks of it pass through shared memory, because sixteen lanes alone
/// would wait for each other's loads.
DEVICE_FN void norm_row(PARAMS(InputParams) p, DEVICE(const f32) x, SHARED(f32) chunk,
                        SHARED(f32) inverses, u32 thread_index) {
  f32 sum = 0.0f;
  for (u32 begin = 0; begin < p.n; begin += NORM_CHUNK) {
    const u32 n = min_u32(p.n - begin, NORM_CHUNK);
    group_barrier();  // the chunk before has been summed
    copy_values(x + begin, n, chunk, thread_index, INPUT_THREADS);
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
      sum = add_squares_device(values, p.norm_run, thread_index, sum);
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

/// Where a value finds its norm and its gate.
struct ValuePlace {
  u32 run;
  u32 in_run;
  u32 group;  // of columns
  u32 in_group;
};

/// Of value i of a row. Divisions are slow, and most inputs need none.
DEVICE_FN ValuePlace place_of(PARAMS(InputParams) p, u32 i) {
  ValuePlace place = {0, i, 0, i};
  if (p.norm_run != 0u && p.norm_run != p.n) {
    place.run = i / p.norm_run;
    place.in_run = i - place.run * p.norm_run;
  }
  if (p.has_gate != 0u && p.width != p.n) {
    place.group = i / p.width;
    place.in_group = i - place.group * p.width;
  }
  return place;
}

/// Of the value after it.
DEVICE_FN ValuePlace next_place(PARAMS(InputParams) p, ValuePlace place) {
  const bool ends_run = place.in_run + 1u == p.norm_run;
  const bool ends_group = place.in_group + 1u == p.width;
  ValuePlace next = {ends_run ? place.run + 1u : place.run, ends_run ? 0u : place.in_run + 1u,
                     ends_group ? place.group + 1u : place.group,
                     ends_group ? 0u : place.in_group + 1u};
  return next;
}

/// What becomes of a value; `inverses` begin with that of run first_run.
DEVICE_FN f32 input_value(PARAMS(InputParams) p, f32 x, DEVICE(const f32) norm,
                          DEVICE(const f32) gate, SHARED(const f32) inverses, u32 first_run,
                          ValuePlace place) {
  f32 value = x;
  if (p.norm_run != 0u) {
    value = value * inverses[place.run - first_run] * norm[place.in_run];
  }
  if (p.has_gate != 0u) {
    const u32 column = place.group * p.period + p.start + place.in_group;
    value = value * activate_f32(p.activation, gate[column]);
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

/// Rounded to the nearest integer, ties to even, by adding 1.5 * 2^23: the code is the low byte.
DEVICE_FN u32 code_bits(f32 value, f32 inverse) {
  const f32 rounding_shift = 12582912.0f;
  return bits_of_f32(value * inverse + rounding_shift);
}

DEVICE_FN i32 code_of(f32 value, f32 inverse) {
  return i32(code_bits(value, inverse) << 24) >> 24;
}

/// Eight neighbouring values of a row.
struct LaneValues {
  f32 of[LANE_VALUES];
};

/// The same as codes.
struct LaneCodes {
  u32 packed[2];
  i32 sum;
  f32 scale;
};

/// Whether eight values from a multiple of eight on have run and group in common, and norm and gate
/// of them lie together.
DEVICE_FN bool has_eights(PARAMS(InputParams) p) {
  return (p.norm_run % LANE_VALUES | p.width % LANE_VALUES | p.period % 4 | p.start % 4 |
          p.gate_stride % 4) == 0u;
}

DEVICE_FN void load_eight_values(DEVICE(const f32) from, THREAD(f32) values) {
  const f32x4 low = load4(from);
  const f32x4 high = load4(from + 4);
  values[0] = low.x;
  values[1] = low.y;
  values[2] = low.z;
  values[3] = low.w;
  values[4] = high.x;
  values[5] = high.y;
  values[6] = high.z;
  values[7] = high.w;
}

/// input_value() of eight values that have what has_eights() says; what is read waits for nothing.
DEVICE_FN void input_eight(PARAMS(InputParams) p, DEVICE(const f32) x, DEVICE(const f32) norm,
                           DEVICE(const f32) gate, SHARED(const f32) inverses, u32 first_run,
                           ValuePlace place, THREAD(f32) values) {
  f32 norms[LANE_VALUES];
  f32 gates[LANE_VALUES];
  load_eight_values(x, values);
  if (p.norm_run != 0u) {
    load_eight_values(norm + place.in_run, norms);
  }
  if (p.has_gate != 0u) {
    load_eight_values(gate + (place.group * p.period + p.start + place.in_group), gates);
  }
  if (p.norm_run != 0u) {
    const f32 inverse = inverses[place.run - first_run];
    UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
      values[i] = values[i] * inverse * norms[i];
    }
  }
  if (p.has_gate != 0u) {
    UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
      values[i] = values[i] * activate_f32(p.activation, gates[i]);
    }
  }
}

/// Those from value `first` on, zeroes at and behind `end`.
DEVICE_FN LaneValues lane_values(PARAMS(InputParams) p, DEVICE(const f32) x, DEVICE(const f32) norm,
                                 DEVICE(const f32) gate, SHARED(const f32) inverses, u32 first_run,
                                 u32 first, u32 end) {
  LaneValues values = {{0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}};
  ValuePlace place = place_of(p, first);
  if (first < end && has_eights(p)) {
    input_eight(p, x + first, norm, gate, inverses, first_run, place, values.of);
  } else if (first < end) {
    UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
      values.of[i] = input_value(p, x[first + i], norm, gate, inverses, first_run, place);
      place = next_place(p, place);
    }
  }
  return values;
}

/// By all lanes, whose values lie one after the other.
DEVICE_FN LaneCodes lane_codes(PARAMS(InputParams) p, THREAD_REF(const LaneValues) values) {
  u32 magnitude = 0;
  UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
    magnitude = max_u32(magnitude, bits_of_f32(values.of[i]) & 0x7fffffffu);
  }
  for (u32 distance = 1; distance < p.block / LANE_VALUES; distance *= 2) {
    magnitude = max_u32(magnitude, shuffle_xor(magnitude, distance));
  }
  const BlockScale scale = block_scale(magnitude);
  LaneCodes codes = {{0, 0}, 0, scale.scale};
  if (scale.inverse != 0.0f) {  // 0 * NaN is no code
    UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
      const i32 code = code_of(values.of[i], scale.inverse);
      codes.packed[i / 4] |= (u32(code) & 255u) << (8 * (i % 4));
      codes.sum += code;
    }
  }
  return codes;
}

/// Stores what lane_codes() made of the row's values from `first` on, if they are before `end`; by
/// all lanes.
DEVICE_FN void store_lane_codes(PARAMS(InputParams) p, LaneCodes mine, u32 row, u32 first, u32 end,
                                u32 lane, DEVICE(u32) codes, DEVICE(f32) scales, DEVICE(i16) sums) {
  const i32 sum = mine.sum + i32(shuffle_xor(u32(mine.sum), 1));
  if (first < end) {
    const u64 at = u64(row) * p.n + first;
    codes[at / 4] = mine.packed[0];
    codes[at / 4 + 1u] = mine.packed[1];
    if (lane % 2 == 0u) {
      sums[at / 16] = i16(sum);
    }
    if (first % p.block == 0u) {
      scales[u64(row) * (p.n / p.block) + first / p.block] = mine.scale;
    }
  }
}

}  // namespace hearth::backend::gpu
