// Rows come DELTA_ROWS at a time; what they bring to the head is worked out once for all columns of
// the threadgroup, in shared memory. Bound by memory for few rows, where the memory is read and
// written once; by the chains of multiply-adds for many.

#include "backend/gpu/kernels/delta_rule.h"

#include "backend/gpu/kernels/delta_cells.h"

namespace hearth::backend::gpu {

#define DELTA_MAX_CHAIN 64u  // DELTA_RULE_MAX_KEY_DIM / 4

/// graph::unit_vector of x [n] to chains of shared memory: element i is at i / 4 of chain i mod 4.
/// By the 16 lanes of half a simdgroup.
DEVICE_FN void unit_chains(DEVICE(const f32) x, u32 n, f32 scale, SHARED(f32) chains, u32 lane) {
  const f32 epsilon = 1.0e-6f;
  f32 partial = 0.0f;
  for (u32 i = lane; i < n; i += N_LANES) {
    partial = fma_f32(x[i], x[i], partial);
  }
  const f32 inverse = 1.0f / sqrt_f32(sum_lanes(partial) + epsilon);
  for (u32 i = lane; i < n; i += N_LANES) {
    chains[i % 4 * DELTA_CHAIN_STRIDE + i / 4] = x[i] * inverse * scale;
  }
}

/// The rows of a sequence that shared memory holds for one head.
struct DeltaRows {
  u32 first;
  u32 n;
};

/// queries, keys [DELTA_ROWS, DELTA_VECTOR], gates [DELTA_ROWS, 2] (decay, beta),
/// row_values [DELTA_ROWS, DELTA_RULE_MAX_COLUMNS].
DEVICE_FN void prepare_rows(PARAMS(DeltaRuleParams) p, DeltaRows rows, u32 head, u32 first_column,
                            DEVICE(const f32) qkv, DEVICE(const f32) write_gate,
                            DEVICE(const f32) decay_gate, f32 rate, f32 bias, SHARED(f32) queries,
                            SHARED(f32) keys, SHARED(f32) gates, SHARED(f32) row_values,
                            u32 thread_id, u32 n_threads) {
  const u32 key_head = key_head_of(p, head);
  const u32 key_features = p.n_key_heads * p.key_dim;
  const u64 features = 2 * key_features + p.n_value_heads * p.value_dim;
  // Half a simdgroup for the query, half for the key.
  const bool is_query = thread_id % 32 < N_LANES;
  for (u32 i = thread_id / 32; i < rows.n; i += n_threads / 32) {
    const u64 start = (rows.first + i) * features + (is_query ? 0u : key_features);
    SHARED(f32) chains = (is_query ? queries : keys) + i * DELTA_VECTOR;
    unit_chains(qkv + (start + key_head * p.key_dim), p.key_dim, is_query ? p.query_scale : 1.0f,
                chains, thread_id % N_LANES);
  }
  if (thread_id < rows.n) {
    const u64 gate = u64(rows.first + thread_id) * p.n_value_heads + head;
    gates[2 * thread_id] = exp_f32(rate * softplus_f32(decay_gate[gate] + bias));
    gates[2 * thread_id + 1] = sigmoid_f32(write_gate[gate]);
  }
  const u32 n_columns = n_threads / 4;
  for (u32 i = thread_id; i < rows.n * n_columns; i += n_threads) {
    const u32 row = i / n_columns;
    const u32 column = i % n_columns;
    row_values[row * DELTA_RULE_MAX_COLUMNS + column] =
        qkv[(rows.first + row) * features + 2 * key_features + head * p.value_dim + first_column +
            column];
  }
}

KERNEL(delta_rule_f32, 64, DeltaRuleParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, qkv),
       BUFFER(2, const f32, write_gate), BUFFER(3, const f32, decay_gate),
       BUFFER(4, const f32, rate), BUFFER(5, const f32, bias), BUFFER(6, const u32, row_starts),
       BUFFER(7, const i32, positions), BUFFER(8, const i32, state_before),
       BUFFER(9, const i32, state_after), BUFFER(10, f32, memory), BUFFER(11, f32, y)) {
  SHARED_ARRAY(f32, queries, (DELTA_ROWS * DELTA_VECTOR));
  SHARED_ARRAY(f32, keys, (DELTA_ROWS * DELTA_VECTOR));
  SHARED_ARRAY(f32, gates, DELTA_ROWS * 2);
  SHARED_ARRAY(f32, row_values, (DELTA_ROWS * DELTA_RULE_MAX_COLUMNS));
  const u32 sequence = k_group.z;
  if (sequence >= counts[2] || row_starts[sequence] >= row_starts[sequence + 1]) {
    return;
  }
  const u32 first = row_starts[sequence];
  const u32 end = row_starts[sequence + 1];
  const u32 head = k_group.y;
  const u32 first_column = k_group.x * (k_group_size.x / 4);
  const u32 column = k_thread.x / 4;  // of the threadgroup
  const u32 chain = k_thread.x % 4;
  const u32 n_chain = p.key_dim / 4;
  DEVICE(f32) cells_of = memory + first_cell(p, head, first_column + column, chain);
  f32 cells[DELTA_MAX_CHAIN];
  const bool is_new = positions[first] == 0;
  const u64 before = u64(u32(state_before[first])) * p.slot_stride;
  UNROLL for (u32 i = 0; i < DELTA_MAX_CHAIN; ++i) {
    cells[i] = !is_new && i < n_chain ? cells_of[before + i * DELTA_CELL_STRIDE] : 0.0f;
  }
  DeltaRows rows;
  for (rows.first = first; rows.first < end; rows.first += DELTA_ROWS) {
    rows.n = min_u32(end - rows.first, DELTA_ROWS);
    group_barrier();  // the rows before have been used
    prepare_rows(p, rows, head, first_column, qkv, write_gate, decay_gate, rate[head], bias[head],
                 queries, keys, gates, row_values, k_thread.x, k_group_size.x);
    group_barrier();
    for (u32 i = 0; i < rows.n; ++i) {
      const u32 row = rows.first + i;
      const u32 from = i * DELTA_VECTOR + chain * DELTA_CHAIN_STRIDE;
      const f32 out = step_column(DELTA_MAX_CHAIN, n_chain, queries + from, keys + from,
                                  row_values[i * DELTA_RULE_MAX_COLUMNS + column], gates[2 * i],
                                  gates[2 * i + 1], cells);
      if (chain == 0) {
        y[(u64(row) * p.n_value_heads + head) * p.value_dim + first_column + column] = out;
      }
      if (row + 1 == end || state_after[row] != state_after[row + 1]) {
        const u64 after = u64(u32(state_after[row])) * p.slot_stride;
        UNROLL for (u32 j = 0; j < DELTA_MAX_CHAIN; ++j) {
          if (j < n_chain) {
            cells_of[after + j * DELTA_CELL_STRIDE] = cells[j];
          }
        }
      }
    }
  }
}

}  // namespace hearth::backend::gpu
