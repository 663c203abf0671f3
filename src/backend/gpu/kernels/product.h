#pragma once
/// Products of matrices, as they lie in GGUF, with the rows of a step (graph/ops/matmul.h,
/// graph/ops/expert_matmul.h), and what becomes of each result on its way out.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define PRODUCT_THREADS 128
#define PRODUCT_GROUP_OUTPUTS 8  // rows of the matrix that a threadgroup multiplies,
#define PRODUCT_GROUP_ROWS 4     // with so many rows of the step

// ProductParams::gate
#define PRODUCT_NO_GATE 0
#define PRODUCT_ROW_GATE 1      // gate [rows], a number for each row
#define PRODUCT_ELEMENT_GATE 2  // gate [y rows, n_out]

/// y[row, o] = weight[o] . x[row] [+ bias[o]] [times activation(gate)] [+ residual[row, o]], each
/// step rounded as the op that it stands for. Threadgroups of PRODUCT_THREADS.
///
/// One matrix (n_used = 0): y rows and x rows are rows of the step. weight [n_out, n_in].
///   Grid (ceil(capacity / PRODUCT_GROUP_ROWS), ceil(n_out / PRODUCT_GROUP_OUTPUTS)).
/// Experts (n_used > 0): y row is row * n_used + slot, so y is [rows, n_used, n_out]; an x row is
///   the same with has_x_per_slot, otherwise a row of the step. weight [experts, expert_rows,
///   n_in], of which rows [first_row, first_row + n_out) of an expert are multiplied. Grid (n_used,
///   ceil(n_out / PRODUCT_GROUP_OUTPUTS), capacity).
///
/// product_<type> for types with an integer form (quant/integer_form.h: q4_0 q4_1 q5_0 q5_1 q8_0
/// q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4 nvfp4). Buffers:
///   0 counts u32 [3]    rows of the step, of its logits, sequences
///   1 weight            blocks, or with is_tiled tiles; begins at a multiple of 16 bytes
///   2 codes i8 [x rows, n_in], 3 scales f32 [x rows, n_in / block], 4 sums i16 [x rows, n_in / 16]
///                       from quantize_input, in the type's activation_block
///   5 routing f32 [rows, 2 n_used]   as graph::Router writes it; absent without experts
///   6 bias f32 [n_out]               absent unless has_bias
///   7 gate f32                       absent without a gate
///   8 residual f32 [y rows, n_out]   absent unless has_residual
///   9 y f32 [y rows, n_out]
/// product_f32, product_f16, product_bf16: n_in is a multiple of 8. Buffers:
///   0 counts, 1 weight, 2 x f32 [x rows, n_in], 3 routing, 4 bias, 5 gate, 6 residual, 7 y
/// For an absent buffer any other may be bound that is only read.
struct ProductParams {
  u32 axis;  // whose rows: 0 of the step, 1 of its logits
  u32 n_in;  // a multiple of the block
  u32 n_out;
  u32 has_bias;
  u32 gate;
  u32 activation;  // of the gate, graph::ActivationKind
  u32 has_residual;
  u32 n_used;
  u32 expert_rows;
  u32 first_row;
  u32 has_x_per_slot;
  u32 is_tiled;  // kernels/weight_tiles.h; expert_rows is a multiple of TILE_ROWS then
};

}  // namespace hearth::backend::gpu
