#pragma once
/// What products read: rows of a value, normed (graph/ops/rms_norm.h), gated, and quantized
/// (quant/activation.h), each step rounded as the op that it stands for.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define INPUT_THREADS 256
#define INPUT_GROUP_VALUES 2048  // of a row that a threadgroup prepares
#define INPUT_ROWS_THREADS 128

/// x -> [norm of each run of norm_run values] -> [* activation(gate)] -> out. The gate of value i
/// of a row is gate[row * gate_stride + i / width * period + start + i % width]
/// (graph::ColumnPattern). Threadgroups of INPUT_THREADS, grid (ceil(n / INPUT_GROUP_VALUES),
/// capacity). For inputs of their own for each of n_used slots, n is that of all together.
///
/// quantize_input. Buffers:
///   0 counts u32 [3]        rows of the step, of its logits, sequences
///   1 x f32 [rows, n]
///   2 norm f32 [norm_run]   absent if norm_run is 0
///   3 gate f32              absent unless has_gate
///   4 codes i8 [rows, n], 5 scales f32 [rows, n / block], 6 sums i16 [rows, n / 16]
/// float_input, for matrices of floats, if there is a norm or a gate. Buffers:
///   0 counts, 1 x, 2 norm, 3 gate, 4 y f32 [rows, n]
/// input_rows (InputRowsParams): either or both for norm_run = n and many rows. Buffers: those of
/// quantize_input, 7 y f32 [rows, n]. Threadgroups of INPUT_ROWS_THREADS, grid (ceil(capacity /
/// (INPUT_ROWS_THREADS / 32))).
/// For an absent buffer any other may be bound that is only read.
struct InputParams {
  u32 axis;      // whose rows: 0 of the step, 1 of its logits
  u32 n;         // a multiple of block
  u32 block;     // values that share a scale: 32 or 256; float_input ignores it
  u32 norm_run;  // divides n; at least 8, n itself for whole rows; 0: no norm
  f32 eps;
  u32 has_gate;
  u32 activation;   // of the gate, graph::ActivationKind
  u32 gate_stride;  // values in a row of gate
  u32 period;       // without a column pattern: period = width = n, start = 0
  u32 start;
  u32 width;
};

struct InputRowsParams {
  InputParams input;
  u32 has_codes;
  u32 has_floats;
};

}  // namespace hearth::backend::gpu
