#pragma once
/// Products of few rows with what makes their input, in one launch: each threadgroup norms, gates
/// and quantizes the rows that it multiplies for itself (kernels/input.h), which costs less than a
/// launch. The same results as quantize_input and product_<type>, which take all other cases.

#include "backend/gpu/kernels/input.h"

namespace hearth::backend::gpu {

#define PROJECTION_THREADS INPUT_THREADS
#define PROJECTION_SIMDGROUPS (PROJECTION_THREADS / 32)
#define PROJECTION_PARTS 3
#define PROJECTION_BLOCKS 76     // of 256 values of all rows of a threadgroup, at most
#define PROJECTION_MAX_ROWS 2    // of the step that a threadgroup multiplies
#define PROJECTION_MAX_RUNS 256  // of the norm in a row

#define PROJECTION_FLOATS 4096      // of all rows of a threadgroup of projection_f32, at most
#define PROJECTION_FLOAT_ROWS 4     // rows of the step that such a threadgroup multiplies, at most,
#define PROJECTION_FLOAT_OUTPUTS 8  // with so many rows of one matrix

/// projection_q4_k, projection_q5_k. Up to three matrices of one type multiply one input; with
/// is_pair the first two are gate and up, and y0 = activation(gate) * up.
/// Buffers: counts, x f32 [x rows, n], norm, gate (of the input), routing f32 [capacity of rows, 2
/// n_used], row_gate f32 [rows], residual f32 [y rows, n_out], weight0 ... weight2, y0 ... y2 f32
/// [y rows, n_out]. For an absent buffer any other may be bound that is only read, or for y1 and
/// y2, that nobody uses. With experts (n_used > 0) weights are [experts, expert_rows, n], of which
/// rows [first_row, first_row + n_out) of an expert are multiplied; y row is row * n_used + slot,
/// and so is an x row with has_x_per_slot. Grid (ceil(rows of all parts / (PROJECTION_SIMDGROUPS *
/// 32 / lanes)), max(n_used, 1), ceil(capacity / group_rows)); a pair counts as one part.
///
/// projection_f32: the same without pair, experts and gate of the input, and with a norm of whole
/// rows alone. Buffers: counts, x, norm, row_gate, residual, weight0 ... weight2, y0 ... y2. Grid
/// (the sum of ceil(n_out / PROJECTION_FLOAT_OUTPUTS) over the parts, 1, ceil(capacity /
/// group_rows)).
struct ProjectionParams {
  InputParams input;  // n: values of one x row
  u32 n_out[PROJECTION_PARTS];
  u32 first_row[2];
  u32 lanes;       // that share a row of a matrix: a power of two up to 32
  u32 group_rows;  // of the step, for a threadgroup: 1 with experts
  u32 is_pair;
  u32 activation;  // of the pair, graph::ActivationKind
  u32 has_row_gate;
  u32 row_activation;
  u32 has_residual;  // for y0
  u32 n_used;
  u32 expert_rows;
  u32 has_x_per_slot;
};

}  // namespace hearth::backend::gpu
