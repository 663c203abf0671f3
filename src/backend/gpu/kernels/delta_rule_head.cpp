// All of a head's memory in the registers of one threadgroup, which can therefore norm and gate
// what comes of the head. It is on its way before the kernel in front has ended: nobody but the
// step before writes it. Bound by memory for one row.

#include "backend/gpu/kernels/delta_cells.h"

namespace hearth::backend::gpu {

/// A row's vectors of a head as they are stored: query, key, value.
DEVICE_FN void copy_head(PARAMS(DeltaRuleParams) p, DEVICE(const f32) row, u32 head,
                         SHARED(f32) vectors, u32 thread_id) {
  const u32 key_features = p.n_key_heads * HEAD_DIM;
  const u32 key_head = key_head_of(p, head);
  const u32 which = thread_id / HEAD_DIM;
  const u32 begin =
      which == 2u ? 2 * key_features + head * HEAD_DIM : which * key_features + key_head * HEAD_DIM;
  if (which < 3u) {
    vectors[thread_id] = row[begin + thread_id % HEAD_DIM];
  }
}

/// unit_chains of a vector in shared memory.
DEVICE_FN void unit_head(SHARED(const f32) x, f32 scale, SHARED(f32) chains, u32 lane) {
  const f32 epsilon = 1.0e-6f;
  f32 values[HEAD_DIM / N_LANES];
  f32 partial = 0.0f;
  UNROLL for (u32 i = 0; i < HEAD_DIM / N_LANES; ++i) {
    values[i] = x[i * N_LANES + lane];
    partial = fma_f32(values[i], values[i], partial);
  }
  const f32 inverse = 1.0f / sqrt_f32(sum_lanes(partial) + epsilon);
  UNROLL for (u32 i = 0; i < HEAD_DIM / N_LANES; ++i) {
    const u32 at = i * N_LANES + lane;
    chains[at % 4 * DELTA_CHAIN_STRIDE + at / 4] = values[i] * inverse * scale;
  }
}

EARLY_KERNEL(delta_rule_head_f32, DELTA_HEAD_THREADS, DeltaHeadParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, qkv), BUFFER(2, const f32, write_gate),
             BUFFER(3, const f32, decay_gate), BUFFER(4, const f32, rate),
             BUFFER(5, const f32, bias), BUFFER(6, const u32, row_starts),
             BUFFER(7, const i32, positions), BUFFER(8, const i32, state_before),
             BUFFER(9, const i32, state_after), BUFFER(10, const f32, norm),
             BUFFER(11, const f32, gate), BUFFER(12, f32, memory), BUFFER(13, f32, y)) {
  SHARED_ARRAY(f32, vectors, 3 * HEAD_DIM);
  SHARED_ARRAY(f32, chains, 2 * DELTA_VECTOR);  // query, key
  SHARED_ARRAY(f32, gates, 2);                  // decay, beta
  SHARED_ARRAY(f32, outputs, HEAD_DIM);
  SHARED_ARRAY(f32, inverse, 1);
  const u32 sequence = k_group.y;
  const u32 n_sequences = counts[2];
  u32 first = 0;
  u32 end = 0;
  if (sequence == 0u) {  // one answer to wait for instead of two
    first = row_starts[0];
    end = row_starts[1];
  } else if (sequence < n_sequences) {
    first = row_starts[sequence];
    end = row_starts[sequence + 1];
  }
  if (sequence >= n_sequences || first >= end) {
    wait_for_kernel_before();
    return;
  }
  const u32 head = k_group.x;
  const u32 column = k_thread.x / 4;
  const u32 chain = k_thread.x % 4;
  DEVICE(f32) cells_of = memory + first_cell(p.delta, head, column, chain);
  f32 cells[HEAD_DIM / 4];
  const bool is_new = positions[first] == 0;
  const u64 before = u64(u32(state_before[first])) * p.delta.slot_stride;
  UNROLL for (u32 i = 0; i < HEAD_DIM / 4; ++i) {
    cells[i] = is_new ? 0.0f : cells_of[before + i * DELTA_CELL_STRIDE];
  }
  const f32 head_rate = rate[head];
  const f32 head_bias = bias[head];
  // Outputs are written by other simdgroups than norm the vectors.
  const u32 feature = k_thread.x % HEAD_DIM;
  const bool has_feature = k_thread.x / HEAD_DIM == 1u;
  const f32 head_norm = norm[feature];
  wait_for_kernel_before();
  const u32 features = (2 * p.delta.n_key_heads + p.delta.n_value_heads) * HEAD_DIM;
  for (u32 row = first; row < end; ++row) {
    const u64 head_of_row = u64(row) * p.delta.n_value_heads + head;
    f32 row_gate = 0.0f;
    if (has_feature) {
      row_gate = gate[head_of_row * HEAD_DIM + feature];
    }
    copy_head(p.delta, qkv + u64(row) * features, head, vectors, k_thread.x);
    const u32 slot_after = u32(state_after[row]);
    const bool is_kept = row + 1 == end || slot_after != u32(state_after[row + 1]);
    const bool has_gates = k_thread.x == DELTA_HEAD_THREADS - 1u;
    f32 decay = 0.0f;
    f32 write = 0.0f;
    if (has_gates) {
      decay = decay_gate[head_of_row];
      write = write_gate[head_of_row];
    }
    group_barrier();
    // By others than those who norm the two vectors.
    if (has_gates) {
      gates[0] = exp_f32(head_rate * softplus_f32(decay + head_bias));
      gates[1] = sigmoid_f32(write);
    }
    if (has_feature) {
      row_gate = activate_f32(p.activation, row_gate);
    }
    if (k_thread.x < 2 * N_LANES) {
      const u32 which = k_thread.x / N_LANES;
      unit_head(vectors + which * HEAD_DIM, which == 0u ? p.delta.query_scale : 1.0f,
                chains + which * DELTA_VECTOR, k_thread.x % N_LANES);
    }
    group_barrier();
    const f32 out = step_column(HEAD_DIM / 4, HEAD_DIM / 4, chains + chain * DELTA_CHAIN_STRIDE,
                                chains + (DELTA_VECTOR + chain * DELTA_CHAIN_STRIDE),
                                vectors[2 * HEAD_DIM + column], gates[0], gates[1], cells);
    if (chain == 0u) {
      outputs[column] = out;
    }
    if (is_kept) {  // on its way while the outputs are normed
      const u64 after = u64(slot_after) * p.delta.slot_stride;
      UNROLL for (u32 i = 0; i < HEAD_DIM / 4; ++i) {
        cells_of[after + i * DELTA_CELL_STRIDE] = cells[i];
      }
    }
    group_barrier();
    if (k_thread.x < 32u) {
      f32 partial = 0.0f;
      UNROLL for (u32 i = 0; i < HEAD_DIM / N_LANES; ++i) {
        const f32 value = outputs[i * N_LANES + k_thread.x % N_LANES];
        partial = fma_f32(value, value, partial);
      }
      partial = sum_lanes(partial);
      if (k_thread.x == 0u) {
        inverse[0] = 1.0f / sqrt_f32(partial / f32(HEAD_DIM) + p.eps);
      }
    }
    group_barrier();
    if (has_feature) {
      const f32 normed = outputs[feature] * inverse[0] * head_norm;
      y[head_of_row * HEAD_DIM + feature] = normed * row_gate;
    }
  }
}

}  // namespace hearth::backend::gpu
