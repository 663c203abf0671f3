#pragma once
/// Gated delta rule, token by token (graph/ops/delta_rule.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define DELTA_RULE_KEY_DIM 128
#define DELTA_RULE_COLUMNS 4  // of a head's memory, a simdgroup each: threadgroups of 128

/// delta_rule_f32, grid (value_dim / DELTA_RULE_COLUMNS, n_value_heads, sequences).
/// qkv [rows, 2 n_key_heads 128 + n_value_heads value_dim]; write_gate, decay_gate [rows,
/// n_value_heads]; rate, bias [n_value_heads]; row_starts [sequences + 1]: the rows of sequence s
/// are row_starts[s] ... row_starts[s + 1] - 1; positions [rows]; slots [sequences].
/// memory [slots, n_value_heads, value_dim, 128], updated in place, zeroed for a row at position 0.
/// y [rows, n_value_heads * value_dim].
struct DeltaRuleParams {
  u32 n_key_heads;
  u32 n_value_heads;  // a multiple of n_key_heads
  u32 value_dim;      // a multiple of DELTA_RULE_COLUMNS
  u32 is_tiled;       // graph::HeadOrder: 0 grouped, 1 tiled
};

}  // namespace hearth::backend::gpu
