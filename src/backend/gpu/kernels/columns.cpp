// A simdgroup owns strips of 16 rows of a matrix and a chunk of columns, whose results it keeps in
// registers while it goes through the blocks of a strip in order of k, with the next tile of
// weights on its way; simdgroups of the other chunks of the same strips find the weights in the
// first cache, as all find the columns' codes there. Of floats, a threadgroup brings pieces of rows
// and columns to shared memory, and a thread has the four chains of one result. 21 KiB of shared
// memory. Bound by memory for few columns, by the instructions around tile products for many.

#include "backend/gpu/kernels/columns.h"

#include "backend/gpu/kernels/column_tile.h"
#include "backend/gpu/kernels/strip_group.h"

namespace hearth::backend::gpu {

/// What a threadgroup multiplies.
struct ColumnGroup {
  u32 part;
  u32 first;  // strip of the part, of floats the number of the threadgroup
};

DEVICE_FN ColumnGroup column_group(PARAMS(ColumnParams) p, u32 group) {
  ColumnGroup result = {0, 0};
  u32 skipped = 0;
  UNROLL for (u32 i = 0; i + 1 < COLUMN_PARTS; ++i) {
    if (group >= p.group_end[i]) {
      result.part = i + 1;
      skipped = p.group_end[i];
    }
  }
  result.first = (group - skipped) * (p.type[result.part] == STRIP_F32 ? 1u : p.group_strips);
  return result;
}

/// Columns of a threadgroup.
struct ColumnRange {
  u32 first;  // row, or with experts an entry
  u32 n;
  u64 first_strip;  // of the expert
};

/// The row of y that column i is, or of x with is_x; columns behind the last repeat it.
DEVICE_FN u32 column_row(PARAMS(ColumnParams) p, DEVICE(const u32) entries, ColumnRange range,
                         u32 i, bool is_x) {
  const u32 at = range.first + min_u32(i, range.n - 1u);
  if (p.n_used == 0u) {
    return at;
  }
  const u32 entry = entries[at];
  return is_x && p.has_x_per_slot == 0u ? entry / p.n_used : entry;
}

DEVICE_FN void column_strip(u32 type, DEVICE(const u8) tiles, DEVICE(const u8) next, u32 n_tiles,
                            u32 n_blocks, DEVICE(const u32) codes, DEVICE(const u32) digits,
                            DEVICE(const f32) scales, THREAD_REF(const ColumnInput) input,
                            u32 n_groups, u32 lane, THREAD_REF(StripTile) tile,
                            THREAD(f32) results) {
  if (type == STRIP_Q4_K) {
    q4_k_column_strip(tiles, next, n_tiles, n_blocks, codes, digits, scales, input, n_groups, lane,
                      tile, results);
  } else if (type == STRIP_Q5_K) {
    q5_k_column_strip(tiles, next, n_tiles, n_blocks, codes, digits, scales, input, n_groups, lane,
                      tile, results);
  } else {
    q6_k_column_strip(tiles, next, n_tiles, n_blocks, codes, digits, scales, input, n_groups, lane,
                      tile, results);
  }
}

#define FLOAT_COLUMN_STEPS 128                        // values of a row that are in shared memory
#define FLOAT_COLUMN_STRIDE (FLOAT_COLUMN_STEPS + 4)  // neighbouring rows meet different banks
#define FLOAT_MAX_COLUMNS (COLUMN_MAX_THREADS / 32 * COLUMN_FLOAT_COLUMNS)
#define FLOAT_WEIGHT_LOADS 2  // of a thread at most: a threadgroup has four simdgroups or more
#define FLOAT_AHEAD \
  2  // pieces of FLOAT_COLUMN_STEPS that are on their way; n is a multiple of both
#define FLOAT_X_LOADS (COLUMN_FLOAT_COLUMNS * FLOAT_COLUMN_STEPS / 128)

/// What a thread brings to shared memory.
struct FloatLoads {
  f32x4 weights[FLOAT_WEIGHT_LOADS];
  f32x4 x[FLOAT_X_LOADS];
};

/// Of values from `begin` on; rows behind the last repeat it.
DEVICE_FN void load_float_weights(DEVICE(const f32) matrix, u32 n, u32 first_row, u32 n_out,
                                  u32 begin, u32 thread_index, u32 n_threads,
                                  THREAD_REF(FloatLoads) loads) {
  UNROLL for (u32 i = 0; i < FLOAT_WEIGHT_LOADS; ++i) {
    const u32 at = 4 * (thread_index + i * n_threads);
    if (at < COLUMN_FLOAT_ROWS * FLOAT_COLUMN_STEPS) {
      const u32 row = min_u32(first_row + at / FLOAT_COLUMN_STEPS, n_out - 1u);
      loads.weights[i] = load4(matrix + u64(row) * n + begin + at % FLOAT_COLUMN_STEPS);
    }
  }
}
DEVICE_FN void load_float_x(DEVICE(const f32) x, u32 n, u32 first_column, u32 n_rows, u32 begin,
                            u32 thread_index, u32 n_threads, THREAD_REF(FloatLoads) loads) {
  UNROLL for (u32 i = 0; i < FLOAT_X_LOADS; ++i) {
    const u32 at = 4 * (thread_index + i * n_threads);
    const u32 row = min_u32(first_column + at / FLOAT_COLUMN_STEPS, n_rows - 1u);
    loads.x[i] = load4(x + u64(row) * n + begin + at % FLOAT_COLUMN_STEPS);
  }
}

DEVICE_FN void store_float_loads(THREAD_REF(const FloatLoads) loads, u32 thread_index,
                                 u32 n_threads, SHARED(f32) rows, SHARED(f32) columns) {
  UNROLL for (u32 i = 0; i < FLOAT_WEIGHT_LOADS; ++i) {
    const u32 at = 4 * (thread_index + i * n_threads);
    if (at < COLUMN_FLOAT_ROWS * FLOAT_COLUMN_STEPS) {
      store4(rows + (at / FLOAT_COLUMN_STEPS * FLOAT_COLUMN_STRIDE + at % FLOAT_COLUMN_STEPS),
             loads.weights[i]);
    }
  }
  UNROLL for (u32 i = 0; i < FLOAT_X_LOADS; ++i) {
    const u32 at = 4 * (thread_index + i * n_threads);
    store4(columns + (at / FLOAT_COLUMN_STEPS * FLOAT_COLUMN_STRIDE + at % FLOAT_COLUMN_STEPS),
           loads.x[i]);
  }
}

/// Goes on with the four chains of a result.
DEVICE_FN f32x4 add_float_steps(SHARED(const f32) row, SHARED(const f32) column, f32x4 sums) {
  UNROLL for (u32 k = 0; k < FLOAT_COLUMN_STEPS; k += 4) {
    const f32x4 w = load4(row + k);
    const f32x4 v = load4(column + k);
    sums.x = fma_f32(w.x, v.x, sums.x);
    sums.y = fma_f32(w.y, v.y, sums.y);
    sums.z = fma_f32(w.z, v.z, sums.z);
    sums.w = fma_f32(w.w, v.w, sums.w);
  }
  return sums;
}

/// What is stored for a product of a row, at `to` of y: output `output`.
DEVICE_FN f32 column_result(PARAMS(ColumnParams) p, u32 part, f32 product, u32 row, u32 output,
                            u64 to, DEVICE(const f32) row_gate, DEVICE(const f32) residual,
                            DEVICE(const f32) slots, DEVICE(const f32) routing) {
  f32 result = product;
  if (p.has_row_gate != 0u) {
    result = result * activate_f32(p.row_activation, row_gate[row]);
  }
  const bool has_residual = p.has_residual != 0u && part == 0u;
  if (p.n_slots == 0u) {
    return has_residual ? result + residual[to] : result;
  }
  DEVICE(const f32) weights = routing + (u64(row) * 2u * p.n_slots + p.n_slots);
  DEVICE(const f32) from = slots + (u64(row) * p.n_slots * p.n_out[0] + output);
  f32 sum = 0.0f;
  for (u32 slot = 0; slot < p.n_slots; ++slot) {
    sum = fma_f32(weights[slot], from[u64(slot) * p.n_out[0]], sum);
  }
  return (has_residual ? sum + residual[to] : sum) + result;
}

EARLY_KERNEL(column_projection, COLUMN_MAX_THREADS, ColumnParams, BUFFER(0, const u32, counts),
             BUFFER(1, const u32, codes), BUFFER(2, const u32, digits),
             BUFFER(3, const f32, scales), BUFFER(4, const f32, float_x),
             BUFFER(5, const u32, entries), BUFFER(6, const u32, tiles),
             BUFFER(7, const f32, row_gate), BUFFER(8, const f32, residual),
             BUFFER(9, const f32, slots), BUFFER(10, const f32, routing),
             BUFFER(11, const u8, weight0), BUFFER(12, const u8, weight1),
             BUFFER(13, const u8, weight2), BUFFER(14, const u8, weight3), BUFFER(15, f32, y0),
             BUFFER(16, f32, y1), BUFFER(17, f32, y2), BUFFER(18, f32, y3)) {
  SHARED_ARRAY(f32, float_rows, (COLUMN_FLOAT_ROWS * FLOAT_COLUMN_STRIDE));
  SHARED_ARRAY(f32, float_columns, (FLOAT_MAX_COLUMNS * FLOAT_COLUMN_STRIDE));
  const ColumnGroup group = column_group(p, k_group.x);
  const u32 part = group.part;
  const u32 type = p.type[part];
  const u32 n_out = p.n_out[part];
  const u32 n_blocks = p.n / 256;
  const u32 tile_bytes = strip_tile_bytes(type);
  const u32 chunk = k_simdgroup % p.n_chunks;
  const u32 begin = group.first + k_simdgroup / p.n_chunks * p.simdgroup_strips;
  const u32 end = min_u32(begin + p.simdgroup_strips, (n_out + TILE_ROWS - 1u) / TILE_ROWS);
  const bool is_pair = p.is_pair != 0u;
  const bool has_experts = p.n_used != 0u;
  const u32 n_rows = counts[p.axis];
  DEVICE(const u8) weight = strip_weight(part, weight0, weight1, weight2, weight3);
  DEVICE(f32) y = strip_output(part, y0, y1, y2, y3);
  if (type == STRIP_F32) {
    const u32 n_threads = k_group_size.x;
    const u32 first_row = group.first / p.float_chunks * COLUMN_FLOAT_ROWS;
    const u32 first_column = group.first % p.float_chunks * (n_threads / 32 * COLUMN_FLOAT_COLUMNS);
    DEVICE(const f32) matrix = floats(weight);
    FloatLoads loads[FLOAT_AHEAD];
    UNROLL for (u32 i = 0; i < FLOAT_AHEAD; ++i) {
      load_float_weights(matrix, p.n, first_row, n_out, i * FLOAT_COLUMN_STEPS, k_thread.x,
                         n_threads, loads[i]);
    }
    for (u32 i = k_thread.x; i < COLUMN_FLOAT_ROWS * p.n / 32; i += n_threads) {
      const u32 ahead = min_u32(first_row + i / (p.n / 32), n_out - 1u);
      prefetch(matrix + (u64(ahead) * p.n + i % (p.n / 32) * 32));
    }
    wait_for_kernel_before();
    if (first_column >= n_rows) {
      return;
    }
    UNROLL for (u32 i = 0; i < FLOAT_AHEAD; ++i) {
      load_float_x(float_x, p.n, first_column, n_rows, i * FLOAT_COLUMN_STEPS, k_thread.x,
                   n_threads, loads[i]);
    }
    const u32 row = k_lane / 4;
    const u32 column = COLUMN_FLOAT_COLUMNS * k_simdgroup + k_lane % 4;
    f32x4 sums = make4(0, 0, 0, 0);
    for (u32 at = 0; at < p.n; at += FLOAT_AHEAD * FLOAT_COLUMN_STEPS) {
      UNROLL for (u32 i = 0; i < FLOAT_AHEAD; ++i) {
        group_barrier();  // what was there has been added
        store_float_loads(loads[i], k_thread.x, n_threads, float_rows, float_columns);
        group_barrier();
        const u32 next = at + (i + FLOAT_AHEAD) * FLOAT_COLUMN_STEPS;
        if (next < p.n) {
          load_float_weights(matrix, p.n, first_row, n_out, next, k_thread.x, n_threads, loads[i]);
          load_float_x(float_x, p.n, first_column, n_rows, next, k_thread.x, n_threads, loads[i]);
        }
        sums = add_float_steps(float_rows + row * FLOAT_COLUMN_STRIDE,
                               float_columns + column * FLOAT_COLUMN_STRIDE, sums);
      }
    }
    const u32 step_row = first_column + column;
    if (step_row < n_rows && first_row + row < n_out) {
      const u64 to = u64(step_row) * n_out + first_row + row;
      y[to] = column_result(p, part, (sums.x + sums.y) + (sums.z + sums.w), step_row,
                            first_row + row, to, row_gate, residual, slots, routing);
    }
    return;
  }
  StripTile tile;
  if (!has_experts && begin < end) {
    tile_load(type, weight + u64(begin) * n_blocks * tile_bytes, k_lane, tile);
  }
  wait_for_kernel_before();

  const u32 chunk_columns = p.chunk_groups * COLUMN_GROUP;
  ColumnRange range = {chunk * chunk_columns, 0, 0};
  u64 strips_before = 0;
  u64 up_before = 0;
  if (has_experts) {
    range.first = tiles[3 * k_group.y + 1];
    range.n = tiles[3 * k_group.y + 2];
    const u64 expert_row = u64(tiles[3 * k_group.y]) * p.expert_rows;
    strips_before = (expert_row + p.first_row[0]) / TILE_ROWS;
    up_before = (expert_row + p.first_row[1]) / TILE_ROWS;
  } else if (range.first < n_rows) {
    range.n = min_u32(n_rows - range.first, chunk_columns);
  }
  if (range.n == 0u || begin >= end) {
    return;
  }
  DEVICE(const u8) first = weight + strips_before * n_blocks * tile_bytes;
  DEVICE(const u8) second = weight1 + up_before * n_blocks * tile_bytes;
  const u32 strip_bytes = n_blocks * tile_bytes;
  if (has_experts) {
    tile_load(type, first + u64(begin) * strip_bytes, k_lane, tile);
  }
  UNROLL for (u32 i = 1; i <= COLUMN_TILES_AHEAD; ++i) {
    if (i < n_blocks && 128 * k_lane < tile_bytes) {
      prefetch(first + (u64(begin) * strip_bytes + i * tile_bytes + 128 * k_lane));
    }
  }
  ColumnInput input;
  UNROLL for (u32 i = 0; i < COLUMN_MAX_GROUPS; ++i) {
    const u32 column = COLUMN_GROUP * i;
    input.own[i] = column_row(p, entries, range, column + k_lane / 4, true) * n_blocks;
    UNROLL for (u32 c = 0; c < 2; ++c) {
      input.both[2 * i + c] =
          column_row(p, entries, range, column + k_lane % 4 * 2 + c, true) * n_blocks;
    }
  }
  const u32 n_groups = (range.n + COLUMN_GROUP - 1u) / COLUMN_GROUP;
  for (u32 strip = begin; strip < end; ++strip) {
    DEVICE(const u8) here = first + u64(strip) * strip_bytes;
    DEVICE(const u8) next = strip + 1u < end ? here + strip_bytes : here;
    DEVICE(const u8) up_tiles = is_pair ? second + u64(strip) * strip_bytes : here;
    f32 results[COLUMN_RESULTS];
    f32 gates[COLUMN_RESULTS];
    UNROLL for (u32 i = 0; i < COLUMN_RESULTS; ++i) {
      results[i] = 0.0f;
    }
    for (u32 is_up = is_pair ? 0u : 1u; is_up < 2u; ++is_up) {
      UNROLL for (u32 i = 0; i < COLUMN_RESULTS; ++i) {
        gates[i] = results[i];
      }
      column_strip(type, is_up != 0u ? up_tiles : here, is_up != 0u ? next : up_tiles,
                   is_pair ? n_blocks : (end - strip) * n_blocks, n_blocks, codes, digits, scales,
                   input, n_groups, k_lane, tile, results);
    }
    if (is_pair) {
      UNROLL for (u32 i = 0; i < COLUMN_RESULTS; ++i) {
        results[i] = activate_f32(p.activation, gates[i]) * results[i];
      }
    }
    UNROLL for (u32 i = 0; i < COLUMN_RESULTS; ++i) {
      const u32 column = i / 4 * COLUMN_GROUP + k_lane % 4 * 2 + i % 2;
      const u32 output = strip * TILE_ROWS + k_lane / 4 + i % 4 / 2 * 8;
      if (column < range.n && output < n_out) {
        const u32 row = column_row(p, entries, range, column, false);
        const u64 to = u64(row) * n_out + output;
        y[to] =
            column_result(p, part, results[i], row, output, to, row_gate, residual, slots, routing);
      }
    }
  }
}

}  // namespace hearth::backend::gpu
