// A simdgroup owns strips of 16 rows of a matrix and a chunk of columns, whose results it keeps in
// registers while it goes through the blocks of a strip in order of k, with the next tile of
// weights on its way; simdgroups of the other chunks of the same strips find the weights in the
// first cache, as all find the columns' codes there. Of floats, a threadgroup brings pieces of rows
// and columns to shared memory, and a thread has the four chains of one result. 21 KiB of shared
// memory. Bound by memory for few columns, by the instructions around tile products for many.

#include "backend/gpu/kernels/columns.h"

#include "backend/gpu/kernels/column_floats.h"
#include "backend/gpu/kernels/column_group.h"
#include "backend/gpu/kernels/column_tile.h"

namespace hearth::backend::gpu {

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

EARLY_KERNEL(column_projection, COLUMN_MAX_THREADS, ColumnParams, BUFFER(0, const u32, counts),
             BUFFER(1, const u32, codes), BUFFER(2, const u32, digits),
             BUFFER(3, const f32, scales), BUFFER(4, const f32, float_x),
             BUFFER(5, const u32, entries), BUFFER(6, const u32, tiles),
             BUFFER(7, const f32, row_gate), BUFFER(8, const f32, residual),
             BUFFER(9, const f32, slots), BUFFER(10, const f32, routing),
             BUFFER(11, const u8, weight0), BUFFER(12, const u8, weight1),
             BUFFER(13, const u8, weight2), BUFFER(14, const u8, weight3), BUFFER(15, f32, y0),
             BUFFER(16, f32, y1), BUFFER(17, f32, y2), BUFFER(18, f32, y3)) {
  SHARED_ARRAY(f32, work, COLUMN_WORK);
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
    const FloatPlace place = float_place(p, group.first, k_group_size.x);
    FloatLoads loads[FLOAT_AHEAD];
    begin_float_columns(p, floats(weight), n_out, place, k_thread.x, k_group_size.x, loads);
    wait_for_kernel_before();
    if (place.column < n_rows) {
      const f32 result = multiply_float_columns(p, floats(weight), n_out, float_x, n_rows, place,
                                                k_thread.x, k_group_size.x, work, loads);
      store_float_column(p, part, result, n_rows, place, k_thread.x, row_gate, residual, slots,
                         routing, y);
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
            column_result(p, part, results[i],
                          column_end(p, part, row, output, to, row_gate, residual, slots, routing));
      }
    }
  }
}

}  // namespace hearth::backend::gpu
