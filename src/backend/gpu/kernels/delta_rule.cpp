// A simdgroup owns one column of a head's memory, 128 floats: lane l keeps four of them in
// registers over all rows of the sequence. Every simdgroup normalises q and k of its head itself.
// Bound by memory for few rows: the memory is read and written once.

#include "backend/gpu/kernels/delta_rule.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

/// The lane's four of 128 values, divided by the length of all.
DEVICE_FN f32x4 unit_part(f32x4 part) {
  const f32 epsilon = 1.0e-6f;
  return part * rsqrt_f32(simd_sum_f32(dot4(part, part, 0.0f)) + epsilon);
}

KERNEL(delta_rule_f32, 128, DeltaRuleParams, BUFFER(0, const f32, qkv),
       BUFFER(1, const f32, write_gate), BUFFER(2, const f32, decay_gate),
       BUFFER(3, const f32, rate), BUFFER(4, const f32, bias), BUFFER(5, const i32, row_starts),
       BUFFER(6, const i32, positions), BUFFER(7, const i32, slots), BUFFER(8, f32, memory),
       BUFFER(9, f32, y)) {
  const u32 column = k_group.x * DELTA_RULE_COLUMNS + k_simdgroup;
  const u32 head = k_group.y;
  const u32 sequence = k_group.z;
  const u32 key_head =
      p.is_tiled != 0u ? head % p.n_key_heads : head / (p.n_value_heads / p.n_key_heads);
  const u32 key_features = p.n_key_heads * DELTA_RULE_KEY_DIM;
  const u32 features = 2 * key_features + p.n_value_heads * p.value_dim;
  const u32 value_offset = 2 * key_features + head * p.value_dim + column;  // in a row of qkv
  const f32 query_scale = 0.0883883476f;                                    // 1 / sqrt(128)

  const u64 slot = u64(u32(slots[sequence]));
  DEVICE(f32)
  cells = memory + ((slot * p.n_value_heads + head) * p.value_dim + column) * DELTA_RULE_KEY_DIM +
          4 * k_lane;
  const u32 first = u32(row_starts[sequence]);
  const u32 last = u32(row_starts[sequence + 1]);
  f32x4 state = make4(0.0f, 0.0f, 0.0f, 0.0f);
  if (first < last && positions[first] != 0) {
    state = load4(cells);
  }

  for (u32 row = first; row < last; ++row) {
    DEVICE(const f32) q_row = qkv + u64(row) * features + key_head * DELTA_RULE_KEY_DIM;
    const f32x4 q = unit_part(load4(q_row + 4 * k_lane)) * query_scale;
    const f32x4 k = unit_part(load4(q_row + key_features + 4 * k_lane));
    const f32 v = qkv[u64(row) * features + value_offset];
    const u64 gate = u64(row) * p.n_value_heads + head;
    const f32 decay = exp_f32(rate[head] * softplus_f32(decay_gate[gate] + bias[head]));
    const f32 beta = sigmoid_f32(write_gate[gate]);

    state = state * decay;
    const f32 delta = beta * (v - simd_sum_f32(dot4(state, k, 0.0f)));
    state = fma4(k, delta, state);
    const f32 out = simd_sum_f32(dot4(state, q, 0.0f));
    if (k_lane == 0) {
      y[gate * p.value_dim + column] = out;
    }
  }
  if (first < last) {
    store4(cells, state);
  }
}

}  // namespace hearth::backend::gpu
