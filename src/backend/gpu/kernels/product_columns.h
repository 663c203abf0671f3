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

/// Whether results are stored as they are.
DEVICE_FN bool are_results_plain(PARAMS(ProductParams) p) {
  return p.has_bias == 0u && p.gate == PRODUCT_NO_GATE && p.has_residual == 0u;
}

/// Stores results as they are: eight neighbours of a column at once.
DEVICE_FN void store_plain(PARAMS(ProductParams) p, THREAD(const f32) results, u32 n,
                           SHARED(const u32) y_rows, u32 first_output, u32 lane, DEVICE(f32) y) {
  UNROLL for (u32 group = 0; group < TILE_PRODUCT_GROUPS; ++group) {
    if (8 * group < n) {
      UNROLL for (u32 i = 0; i < 4; ++i) {
        const u32 column = 8 * group + 2 * (lane % 4) + i % 2;
        const u32 output = first_output + lane / 4 + i / 2 * 8;
        if (column < n && output < p.n_out) {
          y[u64(y_rows[column]) * p.n_out + output] = results[4 * group + i];
        }
      }
    }
  }
}

// Where something becomes of results, they go through shared memory, so that their way out is a
// loop: so many columns at a time of each simdgroup, of which a lane has four neighbours of two.
#define TILE_OUT_COLUMNS 16
#define LANE_OUT_COLUMNS (TILE_OUT_COLUMNS / 8)

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

/// Four numbers from `at` on, of n; those behind the last repeat it.
DEVICE_FN f32x4 load_row(DEVICE(const f32) row, u32 at, u32 n) {
  if (n % 4 == 0u) {
    return load4(row + min_u32(at, n - 4u));
  }
  return make4(row[min_u32(at, n - 1u)], row[min_u32(at + 1u, n - 1u)],
               row[min_u32(at + 2u, n - 1u)], row[min_u32(at + 3u, n - 1u)]);
}

DEVICE_FN void store_row(DEVICE(f32) row, u32 at, u32 n, f32x4 values) {
  if (n % 4 == 0u && at < n) {
    store4(row + at, values);
  } else {
    const f32 four[4] = {values.x, values.y, values.z, values.w};
    UNROLL for (u32 i = 0; i < 4; ++i) {
      if (at + i < n) {
        row[at + i] = four[i];
      }
    }
  }
}

/// What the lane's results are multiplied with and added to.
struct ResultOperands {
  f32x4 gates[LANE_OUT_COLUMNS];
  f32x4 residuals[LANE_OUT_COLUMNS];
};

DEVICE_FN void load_operands(PARAMS(ProductParams) p, SHARED(const u32) y_rows,
                             SHARED(const u32) step_rows, u32 first_output, u32 lane,
                             DEVICE(const f32) gate, DEVICE(const f32) residual,
                             THREAD_REF(ResultOperands) operands) {
  const u32 output = first_output + lane % 4 * 4;
  UNROLL for (u32 i = 0; i < LANE_OUT_COLUMNS; ++i) {
    const u32 column = lane / 4 + 8 * i;
    const u64 row = u64(y_rows[column]) * p.n_out;
    if (p.gate == PRODUCT_ROW_GATE) {
      operands.gates[i] = make4(gate[step_rows[column]], 0.0f, 0.0f, 0.0f);
    } else if (p.gate == PRODUCT_ELEMENT_GATE) {
      operands.gates[i] = load_row(gate + row, output, p.n_out);
    }
    if (p.has_residual != 0u) {
      operands.residuals[i] = load_row(residual + row, output, p.n_out);
    }
  }
}

/// Columns of `out`, of which there are n, and 16 rows of the matrix.
DEVICE_FN void store_results(PARAMS(ProductParams) p, SHARED(const f32) out,
                             SHARED(const u32) y_rows, u32 n, u32 first_output, u32 lane,
                             DEVICE(const f32) bias, THREAD_REF(const ResultOperands) operands,
                             DEVICE(f32) y) {
  const u32 output = first_output + lane % 4 * 4;
  UNROLL for (u32 i = 0; i < LANE_OUT_COLUMNS; ++i) {
    const u32 column = lane / 4 + 8 * i;
    f32x4 result = load4(out + result_word(column, lane % 4 * 4));
    const f32x4 gates = operands.gates[i];
    if (p.has_bias != 0u) {
      result = result + make4(bias[min_u32(output, p.n_out - 1u)],
                              bias[min_u32(output + 1u, p.n_out - 1u)],
                              bias[min_u32(output + 2u, p.n_out - 1u)],
                              bias[min_u32(output + 3u, p.n_out - 1u)]);
    }
    if (p.gate == PRODUCT_ROW_GATE) {
      result = result * activate_f32(p.activation, gates.x);
    } else if (p.gate == PRODUCT_ELEMENT_GATE) {
      result = activate4(p.activation, gates) * result;
    }
    if (p.has_residual != 0u) {
      result = result + operands.residuals[i];
    }
    if (column < n) {
      store_row(y + u64(y_rows[column]) * p.n_out, output, p.n_out, result);
    }
  }
}

/// The simdgroup's results of all n columns, through its own part of shared memory, `out`.
DEVICE_FN void store_columns_of_tiles(PARAMS(ProductParams) p, THREAD(const f32) results, u32 n,
                                      SHARED(f32) out, SHARED(const u32) y_rows,
                                      SHARED(const u32) step_rows, u32 first_output, u32 lane,
                                      DEVICE(const f32) bias, DEVICE(const f32) gate,
                                      DEVICE(const f32) residual, DEVICE(f32) y) {
  if (are_results_plain(p)) {
    store_plain(p, results, n, y_rows, first_output, lane, y);
    return;
  }
  KEEP_LOOP for (u32 shown = 0; shown < n; shown += TILE_OUT_COLUMNS) {
    ResultOperands operands;
    load_operands(p, y_rows + shown, step_rows + shown, first_output, lane, gate, residual,
                  operands);
    simdgroup_barrier();  // what was there is stored
    put_results(results, shown, lane, out);
    simdgroup_barrier();
    store_results(p, out, y_rows + shown, n - shown, first_output, lane, bias, operands, y);
  }
}

}  // namespace hearth::backend::gpu
