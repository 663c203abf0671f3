#pragma once
/// Products of columns with matrices of floats (kernels/columns.h): a threadgroup brings pieces of
/// rows and columns to shared memory, and a thread has the four chains of one result.

#include "backend/gpu/kernels/column_group.h"

namespace hearth::backend::gpu {

#define FLOAT_COLUMN_STEPS 128                        // values of a row that are in shared memory
#define FLOAT_COLUMN_STRIDE (FLOAT_COLUMN_STEPS + 4)  // neighbouring rows meet different banks
#define FLOAT_MAX_COLUMNS (COLUMN_MAX_THREADS / 32 * COLUMN_FLOAT_COLUMNS)
#define FLOAT_WEIGHT_LOADS 2  // of a thread at most: a threadgroup has four simdgroups or more
#define FLOAT_AHEAD \
  2  // pieces of FLOAT_COLUMN_STEPS that are on their way; n is a multiple of both
#define FLOAT_X_LOADS (COLUMN_FLOAT_COLUMNS * FLOAT_COLUMN_STEPS / 128)

// (COLUMN_FLOAT_ROWS + FLOAT_MAX_COLUMNS) * FLOAT_COLUMN_STRIDE floats are COLUMN_WORK.

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

/// The column of a thread's result, behind the threadgroup's first; its row is lane / 4.
DEVICE_FN u32 float_column(u32 thread_index) {
  return COLUMN_FLOAT_COLUMNS * (thread_index / 32) + thread_index % 4;
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

/// The first row of a threadgroup's, and its first column.
struct FloatPlace {
  u32 row;
  u32 column;
};

DEVICE_FN FloatPlace float_place(PARAMS(ColumnParams) p, u32 first, u32 n_threads) {
  const FloatPlace place = {first / p.float_chunks * COLUMN_FLOAT_ROWS,
                            first % p.float_chunks * (n_threads / 32 * COLUMN_FLOAT_COLUMNS)};
  return place;
}

/// Asks for what nobody has to wait for.
DEVICE_FN void begin_float_columns(PARAMS(ColumnParams) p, DEVICE(const f32) matrix, u32 n_out,
                                   FloatPlace place, u32 thread_index, u32 n_threads,
                                   THREAD(FloatLoads) loads) {
  UNROLL for (u32 i = 0; i < FLOAT_AHEAD; ++i) {
    load_float_weights(matrix, p.n, place.row, n_out, i * FLOAT_COLUMN_STEPS, thread_index,
                       n_threads, loads[i]);
  }
  for (u32 i = thread_index; i < COLUMN_FLOAT_ROWS * p.n / 32; i += n_threads) {
    const u32 ahead = min_u32(place.row + i / (p.n / 32), n_out - 1u);
    prefetch(matrix + (u64(ahead) * p.n + i % (p.n / 32) * 32));
  }
}

/// The thread's result, that of its row and column behind the first ones.
DEVICE_FN f32 multiply_float_columns(PARAMS(ColumnParams) p, DEVICE(const f32) matrix, u32 n_out,
                                     DEVICE(const f32) x, u32 n_rows, FloatPlace place,
                                     u32 thread_index, u32 n_threads, SHARED(f32) work,
                                     THREAD(FloatLoads) loads) {
  SHARED(f32) rows = work;
  SHARED(f32) columns = work + COLUMN_FLOAT_ROWS * FLOAT_COLUMN_STRIDE;
  UNROLL for (u32 i = 0; i < FLOAT_AHEAD; ++i) {
    load_float_x(x, p.n, place.column, n_rows, i * FLOAT_COLUMN_STEPS, thread_index, n_threads,
                 loads[i]);
  }
  f32x4 sums = make4(0, 0, 0, 0);
  for (u32 at = 0; at < p.n; at += FLOAT_AHEAD * FLOAT_COLUMN_STEPS) {
    UNROLL for (u32 i = 0; i < FLOAT_AHEAD; ++i) {
      group_barrier();  // what was there has been added
      store_float_loads(loads[i], thread_index, n_threads, rows, columns);
      group_barrier();
      const u32 next = at + (i + FLOAT_AHEAD) * FLOAT_COLUMN_STEPS;
      if (next < p.n) {
        load_float_weights(matrix, p.n, place.row, n_out, next, thread_index, n_threads, loads[i]);
        load_float_x(x, p.n, place.column, n_rows, next, thread_index, n_threads, loads[i]);
      }
      sums = add_float_steps(rows + thread_index % 32 / 4 * FLOAT_COLUMN_STRIDE,
                             columns + float_column(thread_index) * FLOAT_COLUMN_STRIDE, sums);
    }
  }
  return (sums.x + sums.y) + (sums.z + sums.w);
}

/// Stores it, if there is such a result.
DEVICE_FN void store_float_column(PARAMS(ColumnParams) p, u32 part, f32 result, u32 n_rows,
                                  FloatPlace place, u32 thread_index, DEVICE(const f32) row_gate,
                                  DEVICE(const f32) residual, DEVICE(const f32) slots,
                                  DEVICE(const f32) routing, DEVICE(f32) y) {
  const u32 row = place.column + float_column(thread_index);  // of the step
  const u32 output = place.row + thread_index % 32 / 4;
  const u32 n_out = p.n_out[part];
  if (row < n_rows && output < n_out) {
    const u64 to = u64(row) * n_out + output;
    y[to] = column_result(p, part, result,
                          column_end(p, part, row, output, to, row_gate, residual, slots, routing));
  }
}

}  // namespace hearth::backend::gpu
