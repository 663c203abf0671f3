// For one row of the step. A simdgroup has one block of a row's codes, or every sixteenth; parts of
// its next tile are asked for as those of a tile have been used (kernels/row_tile.h); what tiles
// say goes to shared memory, where a thread per result adds it up in order of k. Of floats, chunks
// of eight rows pass through shared memory, where a lane of the first simdgroup has each of the
// four chains of a row. 30 KiB of shared memory. Bound by the latency of the input for small
// matrices, by memory for large ones.

#include "backend/gpu/kernels/small_tile.h"
#include "backend/gpu/kernels/strip_group.h"
#include "backend/gpu/kernels/strip_sums.h"
#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {

/// Floats of the input that pass through shared memory at once: each simdgroup has a block of them.
#define ROW_PART (256 * STRIP_SIMDGROUPS)

#define ROW_CHUNK 256                     // values of a row of floats
#define ROW_CHUNKS 8                      // that are on their way at once
#define ROW_CHUNK_STRIDE (ROW_CHUNK + 4)  // rows of a chunk begin at different banks
#define ROW_CHUNK_WORDS (STRIP_FLOAT_ROWS * ROW_CHUNK_STRIDE)
#define ROW_CHAIN_STEPS 8

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
      store4(pool + in_part, values.low);
      store4(pool + in_part + 4, values.high);
    }
    group_barrier();
    if (simdgroup == STRIP_SIMDGROUPS - 1u) {
      sum = add_squares_ahead(pool, min_u32(p.n - begin, ROW_PART), lane, sum);
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

/// Chunk i of a strip of floats, which waits where a tile would.
DEVICE_FN u32x4 waiting_chunk(THREAD_REF(const StripTile) tile, u32 i) {
  return i < 4u ? tile.pieces[i % 4] : (i < 6u ? tile.heads[i % 2] : tile.bits[i % 2]);
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

/// Goes on with a chain over a chunk: of `weights` every fourth value, of x neighbours; the next
/// steps are read while some are added.
DEVICE_FN f32 add_row_chain(SHARED(const f32) weights, SHARED(const f32) x, f32 sum) {
  f32 w[ROW_CHAIN_STEPS];
  f32x4 v[ROW_CHAIN_STEPS / 4];
  UNROLL for (u32 i = 0; i < ROW_CHAIN_STEPS; ++i) {
    w[i] = weights[4 * i];
  }
  UNROLL for (u32 i = 0; i < ROW_CHAIN_STEPS / 4; ++i) {
    v[i] = load4(x + 4 * i);
  }
  for (u32 step = ROW_CHAIN_STEPS; step <= ROW_CHUNK / 4; step += ROW_CHAIN_STEPS) {
    const u32 ahead = step % (ROW_CHUNK / 4);
    f32 next_w[ROW_CHAIN_STEPS];
    f32x4 next_v[ROW_CHAIN_STEPS / 4];
    UNROLL for (u32 i = 0; i < ROW_CHAIN_STEPS; ++i) {
      next_w[i] = weights[4 * (ahead + i)];
    }
    UNROLL for (u32 i = 0; i < ROW_CHAIN_STEPS / 4; ++i) {
      next_v[i] = load4(x + (ahead + 4 * i));
    }
    UNROLL for (u32 i = 0; i < ROW_CHAIN_STEPS / 4; ++i) {
      sum = fma_f32(w[4 * i], v[i].x, sum);
      sum = fma_f32(w[4 * i + 1], v[i].y, sum);
      sum = fma_f32(w[4 * i + 2], v[i].z, sum);
      sum = fma_f32(w[4 * i + 3], v[i].w, sum);
      v[i] = next_v[i];
    }
    UNROLL for (u32 i = 0; i < ROW_CHAIN_STEPS; ++i) {
      w[i] = next_w[i];
    }
  }
  return sum;
}

/// From chain to chain of the input: not a multiple of all banks.
DEVICE_FN u32 row_chain(u32 n) {
  return n / 4 + 4;
}

/// Eight rows of floats, whose first chunks wait in `loaded`, times the row that is in `chains`:
/// lane 4 r + c of the first simdgroup returns chain c of row r.
DEVICE_FN f32 multiply_row_floats(PARAMS(StripParams) p, DEVICE(const u8) matrix, u32 first_row,
                                  u32 n_out, SHARED(const f32) chains, SHARED(f32) pool,
                                  u32 thread_index, THREAD_REF(StripTile) loaded) {
  const u32 to = thread_index / 64 * ROW_CHUNK_STRIDE + 4 * (thread_index % 64);
  f32 sum = 0.0f;
  for (u32 begin = 0; begin < p.n; begin += ROW_CHUNKS * ROW_CHUNK) {
    if (begin != 0u) {
      load_row_chunks(p, matrix, first_row, n_out, begin, thread_index, loaded);
    }
    UNROLL for (u32 i = 0; i < ROW_CHUNKS; ++i) {
      const u32 k = begin + i * ROW_CHUNK;
      if (k < p.n) {
        // The other of both chunks is still added up; this one was before the last barrier.
        SHARED(f32) chunk = pool + i % 2 * ROW_CHUNK_WORDS;
        store4(as_words(chunk + to), waiting_chunk(loaded, i));
        group_barrier();
        if (thread_index < 32u) {
          sum = add_row_chain(chunk + (thread_index / 4 * ROW_CHUNK_STRIDE + thread_index % 4),
                              chains + (thread_index % 4 * row_chain(p.n) + k / 4), sum);
        }
      }
    }
  }
  return sum;
}

/// The simdgroup's tiles of strips [begin, end), whose first is in `tile`; leaves there the one
/// that comes next.
#define MULTIPLY_ROW(format)                                                                       \
  DEVICE_FN void format##_row(                                                                     \
      THREAD_REF(const StripGroup) group, StripMatrix matrix, DEVICE(const u8) first,              \
      DEVICE(const u8) second, u32 teams, u32 begin, u32 end, u32 simdgroup, u32 lane,             \
      SHARED(const u32) codes, SHARED(const i32) sums, SHARED(const f32) scales, SHARED(f32) work, \
      THREAD_REF(StripItem) item, THREAD_REF(StripTile) tile) {                                    \
    while (item.strip < end) {                                                                     \
      const u32 block = item_block(item, group);                                                   \
      SHARED(f32)                                                                                  \
      terms = work + ((item.strip - begin) * group.n_units + item.unit) * ROW_TERMS;               \
      item = next_item(item, teams, simdgroup, group.n_units);                                     \
      RowProduct product;                                                                          \
      format##_row_multiply(                                                                       \
          tile, item.strip < group.end,                                                            \
          (is_second(item, group) ? second : first) + item_tile(item, group, matrix),              \
          format##_row_codes(codes + block * STRIP_BLOCK_WORDS, sums + block * ROW_SUMS, lane),    \
          lane, product);                                                                          \
      store_row_terms(product, scales[block], lane, terms);                                        \
    }                                                                                              \
  }

MULTIPLY_ROW(q4_k)
MULTIPLY_ROW(q5_k)
MULTIPLY_ROW(q6_k)

/// The same for types with blocks of 32 weights, whose terms are more than fit for all tiles of
/// long rows: the simdgroups have a tile each at a time. Returns result `row` of strip `place`, of
/// a pair that of matrix `kind`, to threads that have one.
DEVICE_FN f32 small_row(u32 type, THREAD_REF(const StripGroup) group, StripMatrix matrix,
                        DEVICE(const u8) first, DEVICE(const u8) second, u32 teams, u32 begin,
                        u32 end, u32 simdgroup, u32 lane, SHARED(const u32) codes,
                        SHARED(const f32) scales, SHARED(f32) work, u32 place, u32 kind, u32 row,
                        THREAD_REF(StripItem) item, THREAD_REF(StripTile) tile) {
  f32 sum = 0.0f;
  for (u32 first_unit = 0; first_unit < group.n_units; first_unit += STRIP_SIMDGROUPS) {
    if (first_unit != 0u) {
      group_barrier();  // what tiles said has been used
    }
    const u32 end_unit = min_u32(first_unit + STRIP_SIMDGROUPS, group.n_units);
    if (item.strip < end && item.unit < end_unit) {
      const u32 block = item_block(item, group);
      item = next_item(item, teams, simdgroup, group.n_units);
      SmallProduct product;
      small_multiply(type, tile, item.strip < group.end,
                     (is_second(item, group) ? second : first) + item_tile(item, group, matrix),
                     codes + block * STRIP_BLOCK_WORDS, lane, product);
      store_small_terms(product, lane, work + simdgroup * SMALL_TERMS);
    }
    group_barrier();
    const u32 begin_sum = max_u32(kind * group.n_blocks, first_unit);
    const u32 end_sum = min_u32((kind + 1) * group.n_blocks, end_unit);
    if (place < end - begin && begin_sum < end_sum) {
      sum = add_small_terms(work + (place * group.n_units + begin_sum - first_unit) * SMALL_TERMS,
                            row, scales + (begin_sum - kind * group.n_blocks) * SMALL_RUNS,
                            end_sum - begin_sum, sum);
    }
  }
  return sum;
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

EARLY_KERNEL(strip_row, STRIP_THREADS, StripParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, row_gate),
             BUFFER(4, const f32, residual), BUFFER(5, const u8, weight0),
             BUFFER(6, const u8, weight1), BUFFER(7, const u8, weight2),
             BUFFER(8, const u8, weight3), BUFFER(9, f32, y0), BUFFER(10, f32, y1),
             BUFFER(11, f32, y2), BUFFER(12, f32, y3), BUFFER(13, const f32, conv_weight),
             BUFFER(14, const i32, positions), BUFFER(15, const i32, state_before),
             BUFFER(16, const i32, state_after), BUFFER(17, f32, rings)) {
  SHARED_ARRAY(f32, work, STRIP_WORK);
  SHARED_ARRAY(f32, pool, ROW_POOL);
  SHARED_ARRAY(f32, scales, STRIP_MAX_BLOCKS);
  SHARED_ARRAY(f32, inverse, 1);
  const StripGroup group = strip_group(p, k_group.x);
  const u32 type = p.type[group.part];
  const u32 n_out = p.n_out[group.part];
  DEVICE(const u8)
  weight = group.part < 2u ? (group.part == 0u ? weight0 : weight1)
                           : (group.part == 2u ? weight2 : weight3);
  DEVICE(f32) y = strip_output(group.part, y0, y1, y2, y3);
  const bool is_float = type == STRIP_F32;
  const bool has_norm = p.has_norm != 0u;

  // What nobody has to wait for: weights, the norm's, how many rows there are.
  const u32 teams = max_u32(STRIP_SIMDGROUPS / group.n_units, 1u);
  const StripMatrix matrix = strip_matrix(type, group.n_blocks);
  StripItem item = first_item(group.begin, teams, k_simdgroup, group.n_units);
  StripTile tile;
  if (is_float) {
    load_row_chunks(p, weight, group.begin * STRIP_FLOAT_ROWS, n_out, 0, k_thread.x, tile);
  } else if (item.strip < group.end) {
    load_tile(type, (is_second(item, group) ? weight1 : weight) + item_tile(item, group, matrix),
              k_lane, tile);
  }
  const bool has_input = k_simdgroup < group.n_blocks;
  const u32 in_row = 256 * k_simdgroup + LANE_VALUES * k_lane;
  RowValues weights = {make4(0, 0, 0, 0), make4(0, 0, 0, 0)};
  if (has_norm && has_input) {
    weights = load_values(norm + in_row);
  }
  const u32 n_step_rows = counts[p.axis];
  wait_for_kernel_before();
  if (n_step_rows == 0u) {
    return;
  }
  RowValues input = {make4(0, 0, 0, 0), make4(0, 0, 0, 0)};
  if (has_input) {
    input = load_values(x + in_row);
  }
  f32 factor = 1.0f;
  if (has_norm) {
    factor = norm_of_row(p, x, input, k_simdgroup, k_lane, pool, inverse);
    input = normed(input, factor, weights);
  }

  if (is_float) {
    for (u32 block = k_simdgroup; block < group.n_blocks; block += STRIP_SIMDGROUPS) {
      const u32 at = 256 * block + LANE_VALUES * k_lane;
      RowValues values = input;
      if (block != k_simdgroup) {
        values = load_values(x + at);
        if (has_norm) {
          values = normed(values, factor, load_values(norm + at));
        }
      }
      const f32 eight[LANE_VALUES] = {values.low.x,  values.low.y,  values.low.z,  values.low.w,
                                      values.high.x, values.high.y, values.high.z, values.high.w};
      UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
        work[i % 4 * row_chain(p.n) + at / 4 + i / 4] = eight[i];
      }
    }
    f32 sum = multiply_row_floats(p, weight, group.begin * STRIP_FLOAT_ROWS, n_out, work, pool,
                                  k_thread.x, tile);
    if (k_thread.x < 32u) {
      sum = sum + shuffle_xor(sum, 1);
      sum = sum + shuffle_xor(sum, 2);
      const u32 output = group.begin * STRIP_FLOAT_ROWS + k_lane / 4;
      if (k_lane % 4 == 0u && output < n_out) {
        f32 result = sum;
        if (p.has_row_gate != 0u) {
          result = result * activate_f32(p.row_activation, row_gate[0]);
        }
        y[output] = p.has_residual != 0u && group.part == 0u ? result + residual[output] : result;
      }
    }
    return;
  }

  SHARED(u32) codes = as_words(pool);
  SHARED(i32) sums = as_integers(pool) + STRIP_MAX_BLOCKS * STRIP_BLOCK_WORDS;
  const bool is_small = STRIP_IS_SMALL(type);
  SHARED(f32) small_scales = pool + STRIP_MAX_BLOCKS * STRIP_BLOCK_WORDS;  // instead of sums
  for (u32 block = k_simdgroup; block < group.n_blocks; block += STRIP_SIMDGROUPS) {
    RowValues values = input;
    if (block != k_simdgroup) {
      const u32 at = 256 * block + LANE_VALUES * k_lane;
      values = load_values(x + at);
      if (has_norm) {
        values = normed(values, factor, load_values(norm + at));
      }
    }
    quantize_for(type, values.low, values.high, k_lane, codes + block * STRIP_BLOCK_WORDS,
                 sums + block * ROW_SUMS,
                 is_small ? small_scales + block * SMALL_RUNS : scales + block);
  }
  group_barrier();

  const bool is_pair = p.is_pair != 0u;
  const u32 place = k_thread.x / (is_pair ? 2 * STRIP_ROWS : STRIP_ROWS);
  const u32 kind = is_pair ? k_thread.x / STRIP_ROWS % 2 : 0u;
  const bool has_residual = p.has_residual != 0u && group.part == 0u;
  const u32 round_strips = is_small ? teams : p.round_strips;
  for (u32 strip = group.begin; strip < group.end; strip += round_strips) {
    const u32 end = min_u32(strip + round_strips, group.end);
    const u32 output = (strip + place) * STRIP_ROWS + k_thread.x % STRIP_ROWS;
    const bool is_stored = place < end - strip && kind == 0u && output < n_out;
    // What the results wait for, asked for early.
    RowConv conv;
    u32 position = 0;
    const bool has_conv = is_stored && p.has_conv != 0u && group.part == 0u;
    if (has_conv) {
      position = u32(positions[0]);
      conv = load_conv(conv_weight, rings + u64(u32(state_before[0])) * p.slot_stride, position,
                       output, n_out);
    }
    f32 before = 0.0f;
    f32 gate = 0.0f;
    if (is_stored && has_residual) {
      before = residual[output];
    }
    if (is_stored && p.has_row_gate != 0u) {
      gate = row_gate[0];
    }
    f32 result = 0.0f;
    if (is_small) {
      result =
          small_row(type, group, matrix, weight, weight1, teams, strip, end, k_simdgroup, k_lane,
                    codes, small_scales, work, place, kind, k_thread.x % STRIP_ROWS, item, tile);
    } else if (type == STRIP_Q4_K) {
      q4_k_row(group, matrix, weight, weight1, teams, strip, end, k_simdgroup, k_lane, codes, sums,
               scales, work, item, tile);
    } else if (type == STRIP_Q5_K) {
      q5_k_row(group, matrix, weight, weight1, teams, strip, end, k_simdgroup, k_lane, codes, sums,
               scales, work, item, tile);
    } else {
      q6_k_row(group, matrix, weight, weight1, teams, strip, end, k_simdgroup, k_lane, codes, sums,
               scales, work, item, tile);
    }
    if (!is_small) {
      group_barrier();
    }
    if (place < end - strip && !is_small) {
      result = sum_row_terms(work + ((place * group.n_units + kind * group.n_blocks) * ROW_TERMS +
                                     4 * (k_thread.x % STRIP_ROWS)),
                             group.n_blocks, type != STRIP_Q6_K);
    }
    if (is_pair) {
      const f32 other = shuffle_xor(result, STRIP_ROWS);
      result = activate_f32(p.activation, result) * other;
    }
    if (is_stored) {
      if (p.has_row_gate != 0u) {
        result = result * activate_f32(p.row_activation, gate);
      }
      result = has_residual ? result + before : result;
      if (has_conv) {
        result = convolve(conv, result, position, output, n_out,
                          rings + u64(u32(state_after[0])) * p.slot_stride);
      }
      y[output] = result;
    }
    if (end < group.end) {
      group_barrier();  // what tiles said has been used
    }
  }
}

}  // namespace hearth::backend::gpu
