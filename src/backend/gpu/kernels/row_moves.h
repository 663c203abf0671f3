#pragma once
/// Rows and columns that go elsewhere as they are (graph/ops/columns.h, concat.h, select_rows.h,
/// row_store.h).
///
/// All: a thread per element of a row of the result, whose n features may be any number:
/// grid (ceil(n / threads), capacity of rows), threads a multiple of 32, at most 256. `axis` says
/// which of `counts` (rows of the step, logit rows, sequences) is the number of rows of the result.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// columns_f32: `width` of every `period` columns, from `start` on. Buffers: counts, x [rows, n /
/// width * period], y [rows, n].
struct ColumnsParams {
  u32 n;  // a multiple of width
  u32 axis;
  u32 period;
  u32 start;
  u32 width;
};

/// concat_f32: Buffers: counts, a [rows, n_a], b [rows, n - n_a], y [rows, n].
struct ConcatParams {
  u32 n;
  u32 axis;
  u32 n_a;
};

/// gather_rows_f32: y[i] = x[sources[i]]; rows of logits by logit_rows (axis 1), rows of the row
/// store by row_sources (axis 0). Buffers: counts, x [any, n], sources i32 [rows], y [rows, n].
/// store_rows_f32: y = x, and store[targets[i]] = x[i] unless that is -1. Buffers: counts, x [rows,
/// n], targets i32 [rows], store [any, n], y [rows, n].
struct RowMoveParams {
  u32 n;
  u32 axis;
};

}  // namespace hearth::backend::gpu
