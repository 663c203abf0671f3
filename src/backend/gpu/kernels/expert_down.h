#pragma once
/// What the chosen experts say of few rows, and the expert that all rows share, in one launch:
/// products with down, weighted sum, residual. The same results as quantize_input, product_<type>
/// and expert_sum_f32.

#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {

#define DOWN_MAX_SLOTS 16   // experts of a row, with the shared one
#define DOWN_SIMDGROUPS 18  // as many as eight experts of two blocks and a shared one have tiles
#define DOWN_THREADS (32 * DOWN_SIMDGROUPS)
#define DOWN_WORK (STRIP_MAX_BLOCKS * ROW_TERMS)  // floats of what tiles say
// Of expert_down_rows: strips of a threadgroup, and a simdgroup for each slot, as often as fits.
#define DOWN_MAX_STRIPS 4
#define DOWN_ROWS_THREADS(n_slots) (32 * (STRIP_SIMDGROUPS / (n_slots) * (n_slots)))

/// expert_down_<type>, where the shared expert has the same type, and expert_down: for one row;
/// expert_down_rows: for several. y[row] = residual[row] + sum over slots of weight[slot]
/// down[expert[slot]] x[row, slot]
/// [+ shared_down (shared_x[row] * activation(shared_gate[row])) * row_activation(row_gate[row])],
/// each step rounded as the ops ExpertMatMul, ExpertSum, Add, MatMul, Mul, Add.
/// Buffers: counts, x f32 [rows, n_used * n], routing f32 [rows, 2 n_used], residual f32 [rows,
/// n_out], weight tiles of [experts, expert_rows, n], of which rows [first_row, first_row + n_out)
/// of an expert are multiplied, shared_x and shared_gate f32 [rows, shared_n], row_gate f32 [rows],
/// shared_weight tiles of [n_out, shared_n], y f32 [rows, n_out]. For an absent buffer any other
/// may be bound that is only read. Threadgroups of DOWN_THREADS, grid (ceil(n_out / STRIP_ROWS)),
/// of expert_down_rows DOWN_ROWS_THREADS of the experts and the shared one, grid
/// (ceil(strips of n_out / group_strips), capacity). expert_rows and first_row are multiples of
/// TILE_ROWS. n and shared_n are multiples of 256, n_used * n + shared_n at most 256
/// STRIP_MAX_BLOCKS, with STRIP_ROW_TERMS for each block at most DOWN_WORK, which expert_down_rows
/// does not need.
struct ExpertDownParams {
  u32 n;
  u32 n_out;
  u32 n_used;  // less than DOWN_MAX_SLOTS
  u32 type;    // STRIP_Q4_K ...
  u32 expert_rows;
  u32 first_row;
  u32 has_residual;
  u32 shared_n;  // 0: there is none
  u32 shared_type;
  u32 activation;  // of shared_gate, graph::ActivationKind
  u32 row_activation;
  u32 group_strips;  // of expert_down_rows, at most DOWN_MAX_STRIPS
};

}  // namespace hearth::backend::gpu
