#pragma once
/// The columns of a threadgroup that multiplies many rows (kernels/tile_product.h), and its results
/// on their way out.

#include "backend/gpu/kernels/product_place.h"
#include "backend/gpu/kernels/tile_product.h"

namespace hearth::backend::gpu {

/// The columns of a threadgroup.
struct TilePlace {
  u32 n_columns;  // 0: none, the threadgroup has nothing to do
  u32 first;      // x row and y row, or with experts an entry
  u64 first_weight;
};

DEVICE_FN TilePlace tile_place(PARAMS(ProductParams) p, DEVICE(const u32) counts,
                               DEVICE(const u32) tiles, u32 group) {
  TilePlace place = {0, 0, 0};
  if (p.n_used == 0u) {
    const u32 n_rows = counts[p.axis];
    place.first = group * TILE_PRODUCT_COLUMNS;
    place.n_columns =
        place.first < n_rows ? min_u32(n_rows - place.first, TILE_PRODUCT_COLUMNS) : 0u;
  } else {
    place.n_columns = tiles[3 * group + 2];
    place.first = tiles[3 * group + 1];
    place.first_weight = u64(tiles[3 * group]) * p.expert_rows + p.first_row;
  }
  return place;
}

/// Rows of x, of the step and of y of each column; those behind the last one repeat it.
DEVICE_FN void place_columns(PARAMS(ProductParams) p, DEVICE(const u32) entries, TilePlace place,
                             u32 thread_index, SHARED(u32) x_rows, SHARED(u32) step_rows,
                             SHARED(u32) y_rows) {
  if (thread_index < TILE_PRODUCT_COLUMNS) {
    const u32 at = place.first + min_u32(thread_index, place.n_columns - 1u);
    y_rows[thread_index] = p.n_used == 0u ? at : entries[at];
    step_rows[thread_index] = p.n_used == 0u ? at : entries[at] / p.n_used;
    x_rows[thread_index] = p.has_x_per_slot != 0u ? y_rows[thread_index] : step_rows[thread_index];
  }
}

// Results go through shared memory, so that their way out is a loop and neighbours are stored
// together: so many columns at a time of each simdgroup.
#define TILE_OUT_COLUMNS 16

/// Where a result lies: lanes of a tile that hold neighbours meet different banks.
DEVICE_FN u32 result_word(u32 column, u32 output) {
  const u32 swapped = (column & ~3u) | ((column & 1u) << 1) | ((column >> 1) & 1u);
  return 16 * swapped + (output ^ (2u * (column & 4u)));
}

/// Columns [begin, begin + TILE_OUT_COLUMNS).
DEVICE_FN void put_results(THREAD(const f32) results, u32 begin, u32 lane, SHARED(f32) out) {
  UNROLL for (u32 i = 0; i < TILE_PRODUCT_COLUMNS / 2; ++i) {
    const u32 column = i / 4 * 8 + 2 * (lane % 4) + i % 2;
    const u32 output = lane / 4 + i % 4 / 2 * 8;
    if (i / 4 * 8 / TILE_OUT_COLUMNS == begin / TILE_OUT_COLUMNS) {
      out[result_word(column % TILE_OUT_COLUMNS, output)] = results[i];
    }
  }
}

/// Columns of `out`, of which there are n, and 16 rows of the matrix: a lane has four of these
/// where nothing becomes of results.
DEVICE_FN void store_results(PARAMS(ProductParams) p, SHARED(const f32) out,
                             SHARED(const u32) y_rows, SHARED(const u32) step_rows, u32 n,
                             u32 first_output, u32 lane, DEVICE(const f32) bias,
                             DEVICE(const f32) gate, DEVICE(const f32) residual, DEVICE(f32) y) {
  if (p.has_bias == 0u && p.gate == PRODUCT_NO_GATE && p.has_residual == 0u && p.n_out % 4 == 0u) {
    const u32 in_tile = lane % 4 * 4;
    const u32 output = first_output + in_tile;
    for (u32 column = lane / 4; column < min_u32(n, TILE_OUT_COLUMNS); column += 8) {
      if (output < p.n_out) {
        store4(y + (u64(y_rows[column]) * p.n_out + output),
               load4(out + result_word(column, in_tile)));
      }
    }
    return;
  }
  const u32 output = first_output + lane % 16;
  for (u32 column = lane / 16; column < min_u32(n, TILE_OUT_COLUMNS); column += 2) {
    if (output < p.n_out) {
      const u64 to = u64(y_rows[column]) * p.n_out + output;
      y[to] = product_result(p, out[result_word(column, lane % 16)], to, output, step_rows[column],
                             bias, gate, residual);
    }
  }
}

/// The simdgroup's results of all n columns, through its own part of shared memory, `out`.
DEVICE_FN void store_columns_of_tiles(PARAMS(ProductParams) p, THREAD(const f32) results, u32 n,
                                      SHARED(f32) out, SHARED(const u32) y_rows,
                                      SHARED(const u32) step_rows, u32 first_output, u32 lane,
                                      DEVICE(const f32) bias, DEVICE(const f32) gate,
                                      DEVICE(const f32) residual, DEVICE(f32) y) {
  for (u32 shown = 0; shown < n; shown += TILE_OUT_COLUMNS) {
    simdgroup_barrier();  // what was there is stored
    put_results(results, shown, lane, out);
    simdgroup_barrier();
    store_results(p, out, y_rows + shown, step_rows + shown, n - shown, first_output, lane, bias,
                  gate, residual, y);
  }
}

}  // namespace hearth::backend::gpu
