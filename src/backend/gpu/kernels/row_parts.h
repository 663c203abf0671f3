#pragma once
/// What kernels for one row of the step have in common (kernels/strips.h): how it is normed, strips
/// of floats, and what becomes of results.

#include "backend/gpu/kernels/float_chain.h"
#include "backend/gpu/kernels/strip_sums.h"
#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {

/// Floats of the input that pass through shared memory at once: each simdgroup has a block of them.
#define ROW_PART (256 * STRIP_SIMDGROUPS)

#define ROW_CHUNK 256                        // values of a row of floats
#define ROW_CHUNKS 8                         // that are on their way at once
#define ROW_CHUNK_CHAIN (ROW_CHUNK / 4 + 4)  // chains of a chunk begin at different banks
#define ROW_CHUNK_WORDS (4 * STRIP_FLOAT_ROWS * ROW_CHUNK_CHAIN)
#define ROW_CHAIN_FOURS 4

/// Values of the input that are multiplied with floats between two barriers more, and from chain to
/// chain of them: not a multiple of all banks.
#define ROW_FLOATS 2816
#define ROW_FLOATS_CHAIN (ROW_FLOATS / 4 + 4)

/// The input at first, then codes and their sums, or two chunks of floats.
#define ROW_POOL (STRIP_MAX_BLOCKS * (STRIP_BLOCK_WORDS + ROW_SUMS))

/// Eight neighbouring values.
struct RowValues {
  f32x4 low;
  f32x4 high;
};

DEVICE_FN RowValues load_values(DEVICE(const f32) from) {
  const RowValues values = {load4(from), load4(from + 4)};
  return values;
}

/// The values times their gate: low, then high, by the same instructions.
DEVICE_FN RowValues gated(u32 activation, RowValues values, RowValues gate) {
  f32x4 low = values.low;
  f32x4 high = values.high;
  f32x4 of_gate = gate.low;
  KEEP_LOOP for (u32 i = 0; i < 2; ++i) {
    const f32x4 next = low * activate4(activation, of_gate);
    low = high;
    of_gate = gate.high;
    high = next;
  }
  const RowValues result = {low, high};
  return result;
}

/// 1 / sqrt(mean + eps) of the row, whose first values are in `first`.
DEVICE_FN f32 norm_of_row(PARAMS(StripParams) p, DEVICE(const f32) x,
                          THREAD_REF(const RowValues) first, u32 simdgroup, u32 lane,
                          SHARED(f32) pool, SHARED(f32) inverse) {
  f32 sum = 0.0f;
  for (u32 begin = 0; begin < p.n; begin += ROW_PART) {
    const u32 in_part = 256 * simdgroup + LANE_VALUES * lane;
    const bool is_there = begin + in_part < p.n;
    RowValues values = first;
    if (begin != 0u) {
      if (is_there) {
        values = load_values(x + (begin + in_part));
      }
      group_barrier();  // the part before has been added up
    }
    if (is_there) {
      store_in_columns(values.low, values.high, in_part, COLUMN_STRIDE(ROW_PART), pool);
    }
    group_barrier();
    if (simdgroup == STRIP_SIMDGROUPS - 1u) {
      sum = add_column_squares(pool + lane % N_LANES * COLUMN_STRIDE(ROW_PART),
                               min_u32(p.n - begin, ROW_PART) / N_LANES, sum);
    }
  }
  if (simdgroup == STRIP_SIMDGROUPS - 1u) {
    sum = sum_lanes(sum);
    if (lane == 0u) {
      inverse[0] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
    }
  }
  group_barrier();
  return inverse[0];
}

DEVICE_FN RowValues normed(RowValues values, f32 inverse, RowValues norm) {
  const RowValues result = {values.low * inverse * norm.low, values.high * inverse * norm.high};
  return result;
}

/// The first chunk that waits where a tile would goes to shared memory, its four chains apart, and
/// those behind it move up.
DEVICE_FN void store_row_chunk(THREAD_REF(StripTile) waiting, u32 thread_index, SHARED(f32) chunk) {
  const u32x4 four = waiting.pieces[0];
  SHARED(f32) to = chunk + (thread_index / 64 * (4 * ROW_CHUNK_CHAIN) + thread_index % 64);
  to[0] = f32_of_bits(four.x);
  to[ROW_CHUNK_CHAIN] = f32_of_bits(four.y);
  to[2 * ROW_CHUNK_CHAIN] = f32_of_bits(four.z);
  to[3 * ROW_CHUNK_CHAIN] = f32_of_bits(four.w);
  UNROLL for (u32 i = 0; i < 3; ++i) {
    waiting.pieces[i] = waiting.pieces[i + 1];
  }
  waiting.pieces[3] = waiting.heads[0];
  waiting.heads[0] = waiting.heads[1];
  waiting.heads[1] = waiting.bits[0];
  waiting.bits[0] = waiting.bits[1];
}

/// The thread's four floats of each of ROW_CHUNKS chunks of eight rows from value `begin` on.
DEVICE_FN void load_row_chunks(PARAMS(StripParams) p, DEVICE(const u8) matrix, u32 first_row,
                               u32 n_out, u32 begin, u32 thread_index, THREAD_REF(StripTile) to) {
  const u32 row = min_u32(first_row + thread_index / 64, n_out - 1u);
  DEVICE(const u32) from = words(matrix) + u64(row) * p.n;
  UNROLL for (u32 i = 0; i < ROW_CHUNKS; ++i) {
    const u32 k = begin + i * ROW_CHUNK + 4 * (thread_index % 64);
    if (k < p.n) {
      const u32x4 chunk = load4(from + k);
      if (i < 4u) {
        to.pieces[i % 4] = chunk;
      } else if (i < 6u) {
        to.heads[i % 2] = chunk;
      } else {
        to.bits[i % 2] = chunk;
      }
    }
  }
}

/// The four chains of ROW_FLOATS values of the input from `begin` on, of which the simdgroup has a
/// block in `input` and reads others.
DEVICE_FN void store_row_chains(PARAMS(StripParams) p, u32 begin, DEVICE(const f32) x,
                                DEVICE(const f32) norm, f32 factor, RowValues input, u32 simdgroup,
                                u32 lane, SHARED(f32) chains) {
  const u32 end = min_u32(begin + ROW_FLOATS, p.n);
  for (u32 block = simdgroup; 256 * block < end; block += STRIP_SIMDGROUPS) {
    if (256 * block >= begin) {
      const u32 at = 256 * block + LANE_VALUES * lane;
      RowValues values = input;
      if (block != simdgroup) {
        values = load_values(x + at);
        if (p.has_norm != 0u) {
          values = normed(values, factor, load_values(norm + at));
        }
      }
      const f32 eight[LANE_VALUES] = {values.low.x,  values.low.y,  values.low.z,  values.low.w,
                                      values.high.x, values.high.y, values.high.z, values.high.w};
      UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
        chains[i % 4 * ROW_FLOATS_CHAIN + (at - begin) / 4 + i / 4] = eight[i];
      }
    }
  }
}

/// Eight rows of floats, whose first chunks wait in `loaded`, times a row, as store_row_chains
/// takes it: lane 4 r + c of the first simdgroup returns chain c of row r. One loop for all chunks,
/// whose instructions are waited for once.
DEVICE_FN f32 multiply_row_floats(PARAMS(StripParams) p, DEVICE(const u8) matrix, u32 first_row,
                                  u32 n_out, DEVICE(const f32) x, DEVICE(const f32) norm,
                                  f32 factor, RowValues input, SHARED(f32) chains, SHARED(f32) pool,
                                  u32 simdgroup, u32 lane, THREAD_REF(StripTile) loaded) {
  const u32 thread_index = 32 * simdgroup + lane;
  store_row_chunk(loaded, thread_index, pool);
  f32 sum = 0.0f;
  KEEP_LOOP for (u32 k = 0; k < p.n; k += ROW_CHUNK) {
    const u32 now = k / ROW_CHUNK % 2 * ROW_CHUNK_WORDS;
    const u32 next = k + ROW_CHUNK;
    if (k % ROW_FLOATS == 0u) {
      if (k != 0u) {
        group_barrier();  // the values before have been added up
      }
      store_row_chains(p, k, x, norm, factor, input, simdgroup, lane, chains);
    }
    group_barrier();  // the chunk is there, the one before has been added up
    if (next < p.n) {
      if (next % (ROW_CHUNKS * ROW_CHUNK) == 0u) {
        load_row_chunks(p, matrix, first_row, n_out, next, thread_index, loaded);
      }
      store_row_chunk(loaded, thread_index, pool + (ROW_CHUNK_WORDS - now));
    }
    if (thread_index < 32u) {
      sum = add_float_chain(pool + (now + thread_index * ROW_CHUNK_CHAIN),
                            chains + (thread_index % 4 * ROW_FLOATS_CHAIN + k % ROW_FLOATS / 4),
                            ROW_CHUNK / 4, ROW_CHAIN_FOURS, sum);
    }
  }
  return sum;
}

/// Eight rows of floats from strip `strip` on, whose first chunks wait in `loaded`, times a row, of
/// which each simdgroup has a block in `input` and reads others.
DEVICE_FN void multiply_float_strip(PARAMS(StripParams) p, u32 part, DEVICE(const u8) weight,
                                    u32 strip, DEVICE(const f32) x, DEVICE(const f32) norm,
                                    f32 factor, RowValues input, DEVICE(const f32) row_gate,
                                    DEVICE(const f32) residual, SHARED(f32) chains,
                                    SHARED(f32) pool, u32 simdgroup, u32 lane,
                                    THREAD_REF(StripTile) loaded, DEVICE(f32) y) {
  const u32 n_out = p.n_out[part];
  f32 sum = multiply_row_floats(p, weight, strip * STRIP_FLOAT_ROWS, n_out, x, norm, factor, input,
                                chains, pool, simdgroup, lane, loaded);
  if (simdgroup == 0u) {
    sum = sum + shuffle_xor(sum, 1);
    sum = sum + shuffle_xor(sum, 2);
    const u32 output = strip * STRIP_FLOAT_ROWS + lane / 4;
    if (lane % 4 == 0u && output < n_out) {
      f32 result = sum;
      if (p.has_row_gate != 0u) {
        result = result * activate_f32(p.row_activation, row_gate[0]);
      }
      y[output] = p.has_residual != 0u && part == 0u ? result + residual[output] : result;
    }
  }
}

/// What a convolution takes of a channel beside its newest value.
struct RowConv {
  f32 weights[STRIP_TAPS];
  f32 before[STRIP_TAPS - 1];  // 1, 2, 3 positions before
};

/// Where a position lies in a ring, from its beginning: `back` positions before `position`, and
/// before position 0 the places that no position has taken yet.
DEVICE_FN u64 ring_place(u32 position, u32 back, u32 channels) {
  const u32 row = back <= position ? (position - back) % (STRIP_TAPS - 1) : back;
  return u64(row) * channels;
}

DEVICE_FN RowConv load_conv(DEVICE(const f32) weight, DEVICE(const f32) ring, u32 position,
                            u32 channel, u32 channels) {
  RowConv conv;
  const f32x4 taps = load4(weight + u64(channel) * STRIP_TAPS);
  conv.weights[0] = taps.x;
  conv.weights[1] = taps.y;
  conv.weights[2] = taps.z;
  conv.weights[3] = taps.w;
  UNROLL for (u32 i = 0; i + 1 < STRIP_TAPS; ++i) {
    conv.before[i] = 0.0f;
    if (i + 1 <= position) {
      conv.before[i] = ring[ring_place(position, i + 1, channels) + channel];
    }
  }
  return conv;
}

/// Puts the newest value into the ring and returns what comes out.
DEVICE_FN f32 convolve(THREAD_REF(const RowConv) conv, f32 value, u32 position, u32 channel,
                       u32 channels, DEVICE(f32) ring) {
  f32 sum = 0.0f;
  UNROLL for (u32 i = STRIP_TAPS - 1; i > 0; --i) {
    sum = fma_f32(conv.weights[STRIP_TAPS - 1 - i], conv.before[i - 1], sum);
    if (i + 1 < STRIP_TAPS) {
      ring[ring_place(position, i, channels) + channel] = conv.before[i - 1];
    }
  }
  ring[ring_place(position, 0, channels) + channel] = value;
  return silu_f32(fma_f32(conv.weights[STRIP_TAPS - 1], value, sum));
}

/// Of the row's convolution: its position, and where its ring is before and after.
struct RowSlots {
  u32 position;
  u32 before;
  u32 after;
};

DEVICE_FN RowSlots row_slots(PARAMS(StripParams) p, DEVICE(const i32) positions,
                             DEVICE(const i32) before, DEVICE(const i32) after) {
  RowSlots slots = {0, 0, 0};
  if (p.has_conv != 0u) {
    slots.position = u32(positions[0]);
    slots.before = u32(before[0]);
    slots.after = u32(after[0]);
  }
  return slots;
}

/// What a result waits for, asked for early.
struct RowEnd {
  RowConv conv;
  bool has_conv;
  f32 residual;
  f32 gate;
};

DEVICE_FN RowEnd row_end(PARAMS(StripParams) p, u32 part, u32 output, bool is_stored,
                         DEVICE(const f32) row_gate, DEVICE(const f32) residual,
                         DEVICE(const f32) conv_weight, RowSlots slots, DEVICE(const f32) rings) {
  RowEnd end;
  end.has_conv = is_stored && p.has_conv != 0u && part == 0u;
  if (end.has_conv) {
    end.conv = load_conv(conv_weight, rings + u64(slots.before) * p.slot_stride, slots.position,
                         output, p.n_out[part]);
  }
  end.residual = 0.0f;
  end.gate = 0.0f;
  if (is_stored && p.has_residual != 0u && part == 0u) {
    end.residual = residual[output];
  }
  if (is_stored && p.has_row_gate != 0u) {
    end.gate = row_gate[0];
  }
  return end;
}

/// Stores what comes of a product.
DEVICE_FN void store_row(PARAMS(StripParams) p, u32 part, f32 product, u32 output,
                         THREAD_REF(const RowEnd) end, RowSlots slots, DEVICE(f32) rings,
                         DEVICE(f32) y) {
  f32 result = product;
  if (p.has_row_gate != 0u) {
    result = result * activate_f32(p.row_activation, end.gate);
  }
  result = p.has_residual != 0u && part == 0u ? result + end.residual : result;
  if (end.has_conv) {
    result = convolve(end.conv, result, slots.position, output, p.n_out[part],
                      rings + u64(slots.after) * p.slot_stride);
  }
  y[output] = result;
}

}  // namespace hearth::backend::gpu
