// A threadgroup multiplies one strip after the other, and its simdgroups take turns with the blocks
// of 16 rows by 256 weights that strips consist of; each has the next block in registers while it
// multiplies one. What blocks say goes to shared memory, where a thread per result adds it up in
// order of k. Of floats, 512 threads bring chunks of eight rows to shared memory, and a lane has
// each of the four chains of a row. 28 KiB of shared memory. Bound by the latency of the input for
// small matrices, by memory for large ones.

#include "backend/gpu/kernels/strips.h"

#include "backend/gpu/kernels/strip_sums.h"

namespace hearth::backend::gpu {

/// What a threadgroup multiplies.
struct StripGroup {
  u32 part;
  u32 begin;  // strips [begin, end) of the part
  u32 end;
  u32 n_rows;    // of the step
  u32 n_blocks;  // of 256 weights in a row of the matrix
  u32 n_units;   // blocks of a strip: of a pair those of the gate, then those of the other
};

DEVICE_FN StripGroup strip_group(PARAMS(StripParams) p, u32 group) {
  StripGroup result;
  result.part = 0;
  u32 skipped = 0;
  UNROLL for (u32 i = 0; i + 1 < STRIP_PARTS; ++i) {
    if (group >= p.group_end[i]) {
      result.part = i + 1;
      skipped = p.group_end[i];
    }
  }
  const u32 strip_rows = p.type[result.part] == STRIP_F32 ? STRIP_FLOAT_ROWS : STRIP_ROWS;
  const u32 per_group = p.group_strips[result.part];
  result.begin = (group - skipped) * per_group;
  result.end =
      min_u32(result.begin + per_group, (p.n_out[result.part] + strip_rows - 1u) / strip_rows);
  result.n_rows = 0;
  result.n_blocks = p.n / 256;
  result.n_units = p.is_pair != 0u ? 2 * result.n_blocks : result.n_blocks;
  return result;
}

/// A block of the threadgroup's strips.
struct StripItem {
  u32 strip;
  u32 unit;
};

/// The one n blocks later.
DEVICE_FN StripItem later_item(StripItem item, u32 n, u32 n_units) {
  StripItem result = {item.strip, item.unit + n};
  while (result.unit >= n_units) {
    result.unit -= n_units;
    ++result.strip;
  }
  return result;
}

/// A matrix from byte `begin` of what begins at a multiple of 16 bytes.
struct StripMatrix {
  DEVICE(const u8) bytes;
  u32 begin;
};

DEVICE_FN StripMatrix matrix_at(DEVICE(const u8) bytes, u64 at) {
  const u32 begin = u32(at % 16u);
  const StripMatrix result = {bytes + (at - begin), begin};
  return result;
}

/// Loads a block; rows behind the matrix's last repeat that.
DEVICE_FN void load_item(PARAMS(StripParams) p, THREAD_REF(const StripGroup) group, u32 type,
                         StripMatrix first, StripMatrix second, StripItem item, u32 lane,
                         THREAD_REF(StripTile) tile) {
  const bool is_second = item.unit >= group.n_blocks;
  const u32 block = is_second ? item.unit - group.n_blocks : item.unit;
  const u32 block_bytes = strip_block_bytes(type);
  const u32 row_bytes = group.n_blocks * block_bytes;
  const u32 begin = (is_second ? second.begin : first.begin) + block * block_bytes;
  const u32 last = p.n_out[group.part] - 1u;
  const u32 row = item.strip * STRIP_ROWS + lane / 4;
  const StripPlace place = {begin + min_u32(row, last) * row_bytes,
                            begin + min_u32(row + 8, last) * row_bytes};
  tile_load(type, is_second ? second.bytes : first.bytes, place, lane, tile);
}

/// 1 / sqrt(mean + eps) of rows: as many at a time as `work` holds go through it, a simdgroup adds
/// up each; of longer rows a part at a time.
DEVICE_FN void norm_rows(PARAMS(StripParams) p, DEVICE(const f32) x, u32 n_rows, SHARED(f32) work,
                         SHARED(f32) inverses, u32 thread_index) {
  const u32 simdgroup = thread_index / 32;
  const u32 at_once = n_rows == 1u ? 1u : max_u32(STRIP_WORK / p.n, 1u);
  for (u32 first = 0; first < n_rows; first += at_once) {
    const u32 n = min_u32(n_rows - first, at_once);
    f32 sum = 0.0f;
    for (u32 begin = 0; begin < p.n; begin += STRIP_WORK) {
      const u32 length = min_u32(p.n - begin, STRIP_WORK);
      group_barrier();  // what was there has been added up
      copy_values(x + (u64(first) * p.n + begin), n * length, work, thread_index, STRIP_THREADS);
      group_barrier();
      if (simdgroup < n) {
        sum = add_squares(work + simdgroup * length, length, thread_index % 32, sum);
      }
    }
    if (simdgroup < n) {
      sum = sum_lanes(sum);
      if (thread_index % 32 == 0u) {
        inverses[first + simdgroup] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
      }
    }
  }
  group_barrier();
}

/// Rows become `codes` [rows][strip_row_words], `digits` [rows][blocks][STRIP_DIGIT_BYTES] and
/// `scales` [rows][blocks].
DEVICE_FN void quantize_rows(PARAMS(StripParams) p, DEVICE(const f32) x, DEVICE(const f32) norm,
                             SHARED(const f32) inverses, THREAD_REF(const StripGroup) group,
                             u32 simdgroup, u32 lane, SHARED(u32) codes, SHARED(u8) digits,
                             SHARED(f32) scales) {
  StripItem item = {0, 0};  // row, block
  item = later_item(item, simdgroup, group.n_blocks);
  while (item.strip < group.n_rows) {
    const u32 in_row = 256 * item.unit + LANE_VALUES * lane;
    DEVICE(const f32) from = x + (u64(item.strip) * p.n + in_row);
    f32x4 low = load4(from);
    f32x4 high = load4(from + 4);
    if (p.has_norm != 0u) {
      const f32 inverse = inverses[item.strip];
      low = low * inverse * load4(norm + in_row);
      high = high * inverse * load4(norm + in_row + 4);
    }
    const u32 block = item.strip * group.n_blocks + item.unit;
    quantize_block(
        low, high, lane,
        codes + (item.strip * strip_row_words(group.n_blocks) + item.unit * STRIP_BLOCK_WORDS),
        digits + block * STRIP_DIGIT_BYTES, scales + block);
    item = later_item(item, STRIP_SIMDGROUPS, group.n_blocks);
  }
}

#define FLOAT_CHUNK 256                 // values of a row of the matrix
#define FLOAT_STRIDE (FLOAT_CHUNK + 4)  // lanes of different rows meet different banks
#define FLOAT_CHUNKS 4                  // that are on their way at once
#define FLOAT_STEPS 8                   // of a chain whose loads do not wait for each other

/// The thread's four floats of each of FLOAT_CHUNKS chunks of eight rows from value `begin` on.
DEVICE_FN void load_chunks(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                           u32 n_out, u32 begin, u32 thread_index, THREAD(f32x4) loaded) {
  const u32 row = min_u32(first_row + thread_index / 64, n_out - 1u);
  UNROLL for (u32 i = 0; i < FLOAT_CHUNKS; ++i) {
    const u32 k = begin + i * FLOAT_CHUNK + 4 * (thread_index % 64);
    if (k < p.n) {
      loaded[i] = load4(matrix + (u64(row) * p.n + k));
    }
  }
}

/// Goes on with a chain over n values, a multiple of 4 FLOAT_STEPS: every fourth of both.
DEVICE_FN f32 add_chain(SHARED(const u32) weights, SHARED(const f32) x, u32 n, f32 sum) {
  f32 w[FLOAT_STEPS];
  f32 v[FLOAT_STEPS];
  UNROLL for (u32 i = 0; i < FLOAT_STEPS; ++i) {
    w[i] = f32_of_bits(weights[4 * i]);
    v[i] = x[4 * i];
  }
  for (u32 next = 4 * FLOAT_STEPS; next <= n; next += 4 * FLOAT_STEPS) {
    const u32 from = next < n ? next : 0u;
    f32 next_w[FLOAT_STEPS];
    f32 next_v[FLOAT_STEPS];
    UNROLL for (u32 i = 0; i < FLOAT_STEPS; ++i) {
      next_w[i] = f32_of_bits(weights[from + 4 * i]);
      next_v[i] = x[from + 4 * i];
    }
    UNROLL for (u32 i = 0; i < FLOAT_STEPS; ++i) {
      sum = fma_f32(w[i], v[i], sum);
      w[i] = next_w[i];
      v[i] = next_v[i];
    }
  }
  return sum;
}

/// Eight rows of floats times a row that is in `x` already: lane 4 r + c returns chain c of row r,
/// the lanes of other simdgroups nothing.
DEVICE_FN f32 multiply_floats(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                              u32 n_out, SHARED(const f32) x, SHARED(u32) chunk, u32 thread_index,
                              THREAD(f32x4) loaded) {
  const u32 lane = thread_index % 32;
  f32 sum = 0.0f;
  for (u32 begin = 0; begin < p.n; begin += FLOAT_CHUNKS * FLOAT_CHUNK) {
    f32x4 now[FLOAT_CHUNKS];
    UNROLL for (u32 i = 0; i < FLOAT_CHUNKS; ++i) {
      now[i] = loaded[i];
    }
    const u32 next = begin + FLOAT_CHUNKS * FLOAT_CHUNK;
    load_chunks(p, matrix, first_row, n_out, next < p.n ? next : 0u, thread_index, loaded);
    UNROLL for (u32 i = 0; i < FLOAT_CHUNKS; ++i) {
      const u32 k = begin + i * FLOAT_CHUNK;
      if (k < p.n) {
        group_barrier();  // the chunk before has been added up
        SHARED(u32) to = chunk + (thread_index / 64 * FLOAT_STRIDE + 4 * (thread_index % 64));
        const u32x4 bits = {bits_of_f32(now[i].x), bits_of_f32(now[i].y), bits_of_f32(now[i].z),
                            bits_of_f32(now[i].w)};
        store4(to, bits);
        group_barrier();
        if (thread_index < 32u) {
          sum = add_chain(chunk + (lane / 4 * FLOAT_STRIDE + lane % 4), x + (k + lane % 4),
                          FLOAT_CHUNK, sum);
        }
      }
    }
  }
  return sum;
}

/// A row of the input to `work`, normed.
DEVICE_FN void norm_floats(PARAMS(StripParams) p, DEVICE(const f32) x, DEVICE(const f32) norm,
                           SHARED(f32) work, SHARED(f32) inverse, u32 thread_index) {
  group_barrier();  // the row before has been multiplied
  copy_values(x, p.n, work, thread_index, STRIP_THREADS);
  group_barrier();
  if (p.has_norm == 0u) {
    return;
  }
  if (thread_index < 32u) {
    const f32 sum = sum_lanes(add_squares(work, p.n, thread_index, 0.0f));
    if (thread_index == 0u) {
      inverse[0] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
    }
  }
  group_barrier();
  const f32 factor = inverse[0];
  for (u32 i = 4 * thread_index; i < p.n; i += 4 * STRIP_THREADS) {
    store4(work + i, load4(work + i) * factor * load4(norm + i));
  }
}

/// Where a part's results go.
DEVICE_FN DEVICE(f32)
    strip_output(u32 part, DEVICE(f32) y0, DEVICE(f32) y1, DEVICE(f32) y2, DEVICE(f32) y3) {
  return part < 2u ? (part == 0u ? y0 : y1) : (part == 2u ? y2 : y3);
}

/// What is stored for a product of part `part`.
DEVICE_FN f32 strip_result(PARAMS(StripParams) p, u32 part, f32 product, u32 step_row, u64 to,
                           DEVICE(const f32) row_gate, DEVICE(const f32) residual) {
  f32 result = product;
  if (p.has_row_gate != 0u) {
    result = result * activate_f32(p.row_activation, row_gate[step_row]);
  }
  return p.has_residual != 0u && part == 0u ? result + residual[to] : result;
}

EARLY_KERNEL(strip_projection, STRIP_THREADS, StripParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, routing),
             BUFFER(4, const f32, row_gate), BUFFER(5, const f32, residual),
             BUFFER(6, const u8, weight0), BUFFER(7, const u8, weight1),
             BUFFER(8, const u8, weight2), BUFFER(9, const u8, weight3), BUFFER(10, f32, y0),
             BUFFER(11, f32, y1), BUFFER(12, f32, y2), BUFFER(13, f32, y3)) {
  SHARED_ARRAY(f32, work, STRIP_WORK);
  SHARED_ARRAY(u32, codes, (STRIP_MAX_BLOCKS * STRIP_BLOCK_WORDS + STRIP_COLUMNS * STRIP_ROW_GAP));
  SHARED_ARRAY(u8, digits, (STRIP_MAX_BLOCKS * STRIP_DIGIT_BYTES));
  SHARED_ARRAY(f32, scales, STRIP_MAX_BLOCKS);
  SHARED_ARRAY(f32, inverses, STRIP_MAX_ROWS);
  StripGroup group = strip_group(p, k_group.x);
  const u32 type = p.type[group.part];
  const u32 n_out = p.n_out[group.part];
  const u32 first_step_row = k_group.z * p.group_rows;
  const u32 n_step_rows = counts[p.axis];
  if (first_step_row >= n_step_rows) {
    wait_for_kernel_before();
    return;
  }
  DEVICE(const u8)
  weight = group.part < 2u ? (group.part == 0u ? weight0 : weight1)
                           : (group.part == 2u ? weight2 : weight3);
  DEVICE(f32) y = strip_output(group.part, y0, y1, y2, y3);
  if (p.has_norm != 0u && 32 * k_thread.x < p.n) {
    prefetch(norm + 32 * k_thread.x);
  }
  if (type == STRIP_F32) {
    DEVICE(const f32) matrix = floats(weight);
    const u32 first_row = group.begin * STRIP_FLOAT_ROWS;
    f32x4 loaded[FLOAT_CHUNKS];
    load_chunks(p, matrix, first_row, n_out, 0, k_thread.x, loaded);
    wait_for_kernel_before();
    const u32 end = min_u32(n_step_rows, first_step_row + p.group_rows);
    for (u32 step_row = first_step_row; step_row < end; ++step_row) {
      norm_floats(p, x + u64(step_row) * p.n, norm, work, inverses, k_thread.x);
      f32 sum = multiply_floats(p, matrix, first_row, n_out, work, codes, k_thread.x, loaded);
      if (k_thread.x < 32u) {
        sum = sum + shuffle_xor(sum, 1);
        sum = sum + shuffle_xor(sum, 2);
        const u32 output = first_row + k_lane / 4;
        if (k_lane % 4 == 0u && output < n_out) {
          const u64 to = u64(step_row) * n_out + output;
          y[to] = strip_result(p, group.part, sum, step_row, to, row_gate, residual);
        }
      }
    }
    return;
  }

  u64 first_row = 0;
  if (p.n_used != 0u) {
    wait_for_kernel_before();
    first_row = u64(u32(routing[u64(first_step_row) * 2u * p.n_used + k_group.y])) * p.expert_rows;
  }
  const u32 row_bytes = group.n_blocks * strip_block_bytes(type);
  const StripMatrix first = matrix_at(weight, (first_row + p.first_row[0]) * row_bytes);
  const StripMatrix second = matrix_at(weight1, (first_row + p.first_row[1]) * row_bytes);
  StripItem item = {group.begin, 0};
  item = later_item(item, k_simdgroup, group.n_units);
  StripTile tile;
  if (item.strip < group.end) {
    load_item(p, group, type, first, second, item, k_lane, tile);
  }
  if (p.n_used == 0u) {
    wait_for_kernel_before();
  }
  group.n_rows = min_u32(n_step_rows - first_step_row, p.group_rows);
  const u32 y_row = first_step_row * max_u32(p.n_used, 1u) + k_group.y;
  DEVICE(const f32) x_rows = x + u64(p.has_x_per_slot != 0u ? y_row : first_step_row) * p.n;
  if (p.has_norm != 0u) {
    norm_rows(p, x_rows, group.n_rows, work, inverses, k_thread.x);
  }
  quantize_rows(p, x_rows, norm, inverses, group, k_simdgroup, k_lane, codes, digits, scales);
  group_barrier();

  const bool has_column = k_lane / 4 < group.n_rows;
  const u32 column_row = has_column ? k_lane / 4 : 0u;
  const u32 block_floats = STRIP_BLOCK_FLOATS(group.n_rows);
  for (u32 strip = group.begin; strip < group.end; strip += p.round_strips) {
    const u32 end = min_u32(strip + p.round_strips, group.end);
    while (item.strip < end) {
      const StripTile now = tile;
      const u32 unit = item.unit;
      SHARED(f32) terms = work + ((item.strip - strip) * group.n_units + unit) * block_floats;
      item = later_item(item, STRIP_SIMDGROUPS, group.n_units);
      if (item.strip >= end) {  // the round's end: the first of the next
        item.strip = end;
        item.unit = 0;
        item = later_item(item, k_simdgroup, group.n_units);
      }
      const bool has_more = item.strip < group.end;
      if (has_more) {
        load_item(p, group, type, first, second, item, k_lane, tile);
      }
      const u32 block = unit >= group.n_blocks ? unit - group.n_blocks : unit;
      const StripCodes mine = strip_codes(
          digits + (column_row * group.n_blocks + block) * STRIP_DIGIT_BYTES, has_column, k_lane);
      StripProduct product;
      tile_multiply(
          type, now,
          codes + (column_row * strip_row_words(group.n_blocks) + block * STRIP_BLOCK_WORDS), mine,
          product);
      store_product(product, group.n_rows, k_lane, terms);
    }
    group_barrier();
    const u32 n_kinds = p.is_pair != 0u ? 2u : 1u;
    const u32 n_results = (end - strip) * group.n_rows * n_kinds * STRIP_ROWS;
    for (u32 begin = 0; begin < n_results; begin += STRIP_THREADS) {
      const u32 i = min_u32(begin + k_thread.x, n_results - 1u);
      const u32 row = i % STRIP_ROWS;
      const u32 kind = p.is_pair != 0u ? i / STRIP_ROWS % 2 : 0u;
      const u32 place = i / (STRIP_ROWS * n_kinds);
      const u32 in_round = group.n_rows == 1u ? place : place / group.n_rows;
      const u32 column = place - in_round * group.n_rows;
      f32 result = sum_strip(
          work + (in_round * group.n_units + kind * group.n_blocks) * block_floats, group.n_rows,
          group.n_blocks, row, column, type != STRIP_Q6_K, scales + column * group.n_blocks);
      const f32 other = shuffle_xor(result, STRIP_ROWS);
      if (p.is_pair != 0u) {
        result = activate_f32(p.activation, result) * other;
      }
      const u32 output = (strip + in_round) * STRIP_ROWS + row;
      if (begin + k_thread.x < n_results && kind == 0u && output < n_out) {
        const u64 to = u64(y_row + column) * n_out + output;
        y[to] =
            strip_result(p, group.part, result, first_step_row + column, to, row_gate, residual);
      }
    }
    group_barrier();  // what blocks said has been used
  }
}

}  // namespace hearth::backend::gpu
