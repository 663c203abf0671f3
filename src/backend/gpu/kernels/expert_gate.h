#pragma once
/// The choice of experts for few rows and the first half of what they do, in one launch: router,
/// norm, products with gate and up. The same results as router_f32, quantize_input and
/// product_<type>.

#include "backend/gpu/kernels/router.h"
#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {

#define EXPERT_MAX_IN 4096  // values of a row
#define GATE_MAX_EXPERTS 512
// Kernels for a type choose so few of so many.
#define GATE_TYPE_MAX_EXPERTS 256
#define GATE_TYPE_MAX_USED 8
/// Floats of x at first, then of what tiles say.
#define EXPERT_WORK (EXPERT_MAX_IN / 256 * 2 * SMALL_TERMS)
/// Strips of a threadgroup, times 2 n / 256, at most.
#define EXPERT_MAX_UNITS(type) (EXPERT_WORK / STRIP_ROW_TERMS(type))
/// Strips of a threadgroup at most: a thread adds up each result of gate and of up.
#define EXPERT_MAX_STRIPS (STRIP_THREADS / (2 * STRIP_ROWS))
/// Of several rows: a simdgroup has one of gate or of up.
#define GATE_ROWS_STRIPS (STRIP_SIMDGROUPS / 2)

/// expert_gate_<type> and, for any type and choice, expert_gate: for one row; expert_gate_rows: for
/// several. y[row, slot] = activation(gate[expert[slot]] x[row]) * up[expert[slot]] x[row], with x
/// normed as a whole row first if has_norm, and experts as graph::Router chooses them. Buffers:
/// counts, x f32 [rows, n], norm f32 [n], logits f32 [rows, n_experts], tiles of gate and up of
/// [n_experts, expert_rows, n], of which rows [first_row[i], first_row[i] + n_out) of an expert are
/// multiplied, routing f32 [rows, 2 n_used] (written as router_f32 writes it), y f32 [rows, n_used,
/// n_out]. gate and up may be the same buffer; an absent norm any that is only read. Threadgroups
/// of STRIP_THREADS, grid (ceil(strips of n_out / group_strips), n_used, capacity). n is a multiple
/// of 256 up to EXPERT_MAX_IN, expert_rows and first_row are multiples of TILE_ROWS. group_strips
/// is at most GATE_ROWS_STRIPS for several rows, for one EXPERT_MAX_STRIPS and, times 2 n / 256,
/// EXPERT_MAX_UNITS.
struct ExpertGateParams {
  u32 n;
  u32 has_norm;
  f32 eps;
  u32 n_experts;  // at most GATE_MAX_EXPERTS
  u32 n_used;     // at most ROUTER_MAX_USED
  u32 n_out;
  u32 type;  // STRIP_Q4_K ...
  u32 expert_rows;
  u32 first_row[2];
  u32 activation;  // graph::ActivationKind
  u32 group_strips;
};

}  // namespace hearth::backend::gpu
