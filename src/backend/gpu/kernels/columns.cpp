// A simdgroup owns strips of 16 rows of a matrix and a chunk of columns, whose results it keeps in
// registers while it goes through the blocks of a strip in order of k, with the next tile of
// weights on its way; simdgroups of the other chunks of the same strips find the weights in the
// first cache, as all find the columns' codes there. No shared memory. Bound by memory for few
// columns, by the instructions around tile products for many.

#include "backend/gpu/kernels/columns.h"

#include "backend/gpu/kernels/column_tile.h"
#include "backend/gpu/kernels/strip_group.h"

namespace hearth::backend::gpu {

/// What a threadgroup multiplies.
struct ColumnGroup {
  u32 part;
  u32 first;  // strip of the part
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
  result.first = (group - skipped) * p.group_strips;
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
                            u32 n_blocks, DEVICE(const u32) codes, DEVICE(const f32) scales,
                            DEVICE(const u32) sums, THREAD_REF(const ColumnInput) input,
                            u32 n_groups, u32 lane, THREAD_REF(StripTile) tile,
                            THREAD(f32) results) {
  if (type == STRIP_Q4_K) {
    q4_k_column_strip(tiles, next, n_tiles, n_blocks, codes, scales, sums, input, n_groups, lane,
                      tile, results);
  } else if (type == STRIP_Q5_K) {
    q5_k_column_strip(tiles, next, n_tiles, n_blocks, codes, scales, sums, input, n_groups, lane,
                      tile, results);
  } else {
    q6_k_column_strip(tiles, next, n_tiles, n_blocks, codes, scales, sums, input, n_groups, lane,
                      tile, results);
  }
}

EARLY_KERNEL(column_projection, COLUMN_MAX_THREADS, ColumnParams, BUFFER(0, const u32, counts),
             BUFFER(1, const u32, codes), BUFFER(2, const f32, scales), BUFFER(3, const u32, sums),
             BUFFER(4, const u32, entries), BUFFER(5, const u32, tiles),
             BUFFER(6, const f32, row_gate), BUFFER(7, const f32, residual),
             BUFFER(8, const u8, weight0), BUFFER(9, const u8, weight1),
             BUFFER(10, const u8, weight2), BUFFER(11, const u8, weight3), BUFFER(12, f32, y0),
             BUFFER(13, f32, y1), BUFFER(14, f32, y2), BUFFER(15, f32, y3)) {
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
  DEVICE(const u8)
  weight = part < 2u ? (part == 0u ? weight0 : weight1) : (part == 2u ? weight2 : weight3);
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
  DEVICE(f32) y = strip_output(part, y0, y1, y2, y3);
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
                   is_pair ? n_blocks : (end - strip) * n_blocks, n_blocks, codes, scales, sums,
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
        f32 result = results[i];
        if (p.has_row_gate != 0u) {
          result = result * activate_f32(p.row_activation, row_gate[row]);
        }
        y[to] = p.has_residual != 0u && part == 0u ? result + residual[to] : result;
      }
    }
  }
}

}  // namespace hearth::backend::gpu
