#pragma once
/// Gated delta rule, token by token (graph/ops/delta_rule.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define DELTA_RULE_MAX_KEY_DIM 256
#define DELTA_RULE_MAX_COLUMNS 32  // of a head's memory, four threads each

/// delta_rule_128_f32 for heads with key_dim 128, delta_rule_f32 for all.
/// Buffers: counts, qkv [rows, 2 n_key_heads key_dim + n_value_heads value_dim], write_gate and
/// decay_gate [rows, n_value_heads], rate and bias [n_value_heads], row_starts [sequences + 1],
/// positions [rows], state_before [rows], state_after [rows], memory, y [rows, n_value_heads *
/// value_dim].
/// memory: the layer's memory in slot s begins at float s * slot_stride of the buffer:
/// [n_value_heads][value_dim / 8][key_dim / 4][8][4], cell (key i, value j) of a head in
/// [j / 8][i / 4][j % 8][i % 4]. Slots are written as kernels/causal_conv.h says of rings.
/// Threads: 4 for each of 16 columns. delta_rule_128_f32: 8 for each of 16 or, if that divides
/// value_dim, 32.
/// Grid (value_dim / columns, n_value_heads, capacity of sequences).
struct DeltaRuleParams {
  u32 n_key_heads;
  u32 n_value_heads;  // a multiple of n_key_heads
  u32 key_dim;        // a multiple of 4, at most DELTA_RULE_MAX_KEY_DIM
  u32 value_dim;      // a multiple of 16
  u32 is_tiled;       // graph::HeadOrder: 0 grouped, 1 tiled
  f32 query_scale;    // 1.0f / std::sqrt(float(key_dim)), as the host rounds it
  u64 slot_stride;    // floats from slot to slot
};

/// delta_rule_head_f32, for heads with key_dim = value_dim = 128 and few rows: what comes of a head
/// is normed (graph/ops/rms_norm.h) by `norm` [value_dim] and multiplied by activation(gate) in the
/// same launch, each step rounded as the op that it stands for.
/// Buffers: counts, qkv, write_gate, decay_gate, rate, bias, row_starts, positions, state_before,
/// state_after as above, norm, gate [rows, n_value_heads * value_dim], memory, y. Threads
/// DELTA_HEAD_THREADS, grid (n_value_heads, capacity of sequences).
#define DELTA_HEAD_THREADS 512
struct DeltaHeadParams {
  DeltaRuleParams delta;
  f32 eps;
  u32 activation;  // of the gate, graph::ActivationKind
};

}  // namespace hearth::backend::gpu
