#pragma once
/// Products of few rows with matrices of floats, with what makes their input, in one launch: each
/// threadgroup norms the rows that it multiplies for itself (kernels/input.h), which costs less
/// than a launch. The same results as float_input and product_f32, which take all other cases.

#include "backend/gpu/kernels/input.h"

namespace hearth::backend::gpu {

#define PROJECTION_THREADS INPUT_THREADS
#define PROJECTION_PARTS 3
#define PROJECTION_FLOATS 4096  // of all rows of a threadgroup, at most
#define PROJECTION_ROWS 4       // rows of the step that a threadgroup multiplies, at most,
#define PROJECTION_OUTPUTS 8    // with so many rows of one matrix

/// projection_f32: up to three matrices multiply one input, which may be normed as a whole row.
/// Buffers: counts, x f32 [rows, n], norm, row_gate f32 [rows], residual f32 [rows, n_out],
/// weight0 ... weight2, y0 ... y2 f32 [rows, n_out]. For an absent buffer any other may be bound
/// that is only read, or for y1 and y2, that nobody uses. Grid (the sum of ceil(n_out /
/// PROJECTION_OUTPUTS) over the parts, 1, ceil(capacity / group_rows)).
struct ProjectionParams {
  InputParams input;  // n: values of one x row
  u32 n_out[PROJECTION_PARTS];
  u32 group_rows;  // of the step, for a threadgroup
  u32 has_row_gate;
  u32 row_activation;
  u32 has_residual;  // for y0
};

}  // namespace hearth::backend::gpu
