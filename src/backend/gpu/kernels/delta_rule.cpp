// Four threads own a column of a head's memory, thread c the cells whose key dimension is c mod 4,
// in registers over all rows of the sequence: the four partial sums of the canonical order. Rows
// come DELTA_ROWS at a time; what they bring to the head is worked out once for all columns of the
// threadgroup, in shared memory (19 KiB). Bound by memory for few rows, where the memory is read
// and written once; by the chains of multiply-adds for many.

#include "backend/gpu/kernels/delta_rule.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define DELTA_ROWS 8u
#define DELTA_MAX_CHAIN 64u  // DELTA_RULE_MAX_KEY_DIM / 4
// From chain to chain of a key or query: the four are read at once, from different banks.
#define DELTA_CHAIN_STRIDE 68u
#define DELTA_VECTOR 272u  // 4 * DELTA_CHAIN_STRIDE

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

/// The two contractions of a column: four partial sums, of which the caller holds one.
DEVICE_FN f32 sum_chains(f32 partial) {
  partial += shuffle_xor(partial, 1);
  return partial + shuffle_xor(partial, 2);
}

DEVICE_FN u32 key_head_of(PARAMS(DeltaRuleParams) p, u32 head) {
  return p.is_tiled != 0u ? head % p.n_key_heads : head / (p.n_value_heads / p.n_key_heads);
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

/// One row: the caller's cells of the column, n_chain of them, and the column's output.
DEVICE_FN f32 step_column(u32 n_max, u32 n_chain, SHARED(const f32) query, SHARED(const f32) key,
                          f32 value, f32 decay, f32 beta, THREAD(f32) cells) {
  f32 partial = 0.0f;
  UNROLL for (u32 i = 0; i < n_max; ++i) {
    if (i < n_chain) {
      cells[i] = cells[i] * decay;
      partial = fma_f32(cells[i], key[i], partial);
    }
  }
  const f32 delta = beta * (value - sum_chains(partial));
  partial = 0.0f;
  UNROLL for (u32 i = 0; i < n_max; ++i) {
    if (i < n_chain) {
      cells[i] = fma_f32(key[i], delta, cells[i]);
      partial = fma_f32(cells[i], query[i], partial);
    }
  }
  return sum_chains(partial);
}

/// Where the caller's cells of a head's memory begin, and how far they are apart.
DEVICE_FN u64 first_cell(PARAMS(DeltaRuleParams) p, u32 head, u32 column, u32 chain) {
  const u64 strip = u64(head) * (p.value_dim / 8) + column / 8;
  return strip * (8 * p.key_dim) + column % 8 * 4 + chain;
}
#define DELTA_CELL_STRIDE 32u

/// n_max: n_chain where that is known to the compiler, otherwise its limit.
#define DELTA_RULE_KERNEL(name, max_threads, n_max, n_chain_of)                                    \
  KERNEL(name, max_threads, DeltaRuleParams, BUFFER(0, const u32, counts),                         \
         BUFFER(1, const f32, qkv), BUFFER(2, const f32, write_gate),                              \
         BUFFER(3, const f32, decay_gate), BUFFER(4, const f32, rate), BUFFER(5, const f32, bias), \
         BUFFER(6, const u32, row_starts), BUFFER(7, const i32, positions),                        \
         BUFFER(8, const i32, state_before), BUFFER(9, const i32, state_after),                    \
         BUFFER(10, f32, memory), BUFFER(11, f32, y)) {                                            \
    SHARED_ARRAY(f32, queries, (DELTA_ROWS * DELTA_VECTOR));                                       \
    SHARED_ARRAY(f32, keys, (DELTA_ROWS * DELTA_VECTOR));                                          \
    SHARED_ARRAY(f32, gates, DELTA_ROWS * 2);                                                      \
    SHARED_ARRAY(f32, row_values, (DELTA_ROWS * DELTA_RULE_MAX_COLUMNS));                          \
    const u32 sequence = k_group.z;                                                                \
    if (sequence >= counts[2] || row_starts[sequence] >= row_starts[sequence + 1]) {               \
      return;                                                                                      \
    }                                                                                              \
    const u32 first = row_starts[sequence];                                                        \
    const u32 end = row_starts[sequence + 1];                                                      \
    const u32 head = k_group.y;                                                                    \
    const u32 first_column = k_group.x * (k_group_size.x / 4);                                     \
    const u32 column = k_thread.x / 4; /* of the threadgroup */                                    \
    const u32 chain = k_thread.x % 4;                                                              \
    const u32 n_chain = n_chain_of;                                                                \
    DEVICE(f32) cells_of = memory + first_cell(p, head, first_column + column, chain);             \
    f32 cells[n_max];                                                                              \
    const bool is_new = positions[first] == 0;                                                     \
    const u64 before = u64(u32(state_before[first])) * p.slot_stride;                              \
    UNROLL for (u32 i = 0; i < n_max; ++i) {                                                       \
      cells[i] = !is_new && i < n_chain ? cells_of[before + i * DELTA_CELL_STRIDE] : 0.0f;         \
    }                                                                                              \
    DeltaRows rows;                                                                                \
    for (rows.first = first; rows.first < end; rows.first += DELTA_ROWS) {                         \
      rows.n = min_u32(end - rows.first, DELTA_ROWS);                                              \
      group_barrier(); /* the rows before have been used */                                        \
      prepare_rows(p, rows, head, first_column, qkv, write_gate, decay_gate, rate[head],           \
                   bias[head], queries, keys, gates, row_values, k_thread.x, k_group_size.x);      \
      group_barrier();                                                                             \
      for (u32 i = 0; i < rows.n; ++i) {                                                           \
        const u32 row = rows.first + i;                                                            \
        const u32 from = i * DELTA_VECTOR + chain * DELTA_CHAIN_STRIDE;                            \
        const f32 out = step_column(n_max, n_chain, queries + from, keys + from,                   \
                                    row_values[i * DELTA_RULE_MAX_COLUMNS + column], gates[2 * i], \
                                    gates[2 * i + 1], cells);                                      \
        if (chain == 0) {                                                                          \
          y[(u64(row) * p.n_value_heads + head) * p.value_dim + first_column + column] = out;      \
        }                                                                                          \
        if (row + 1 == end || state_after[row] != state_after[row + 1]) {                          \
          const u64 after = u64(u32(state_after[row])) * p.slot_stride;                            \
          UNROLL for (u32 j = 0; j < n_max; ++j) {                                                 \
            if (j < n_chain) {                                                                     \
              cells_of[after + j * DELTA_CELL_STRIDE] = cells[j];                                  \
            }                                                                                      \
          }                                                                                        \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }

DELTA_RULE_KERNEL(delta_rule_128_f32, 128, 32, 32)
DELTA_RULE_KERNEL(delta_rule_f32, 64, DELTA_MAX_CHAIN, p.key_dim / 4)

#define HEAD_DIM 128u

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

// All of a head's memory in the registers of one threadgroup, on its way before the kernel in front
// has ended: nobody but the step before writes it.
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
  if (sequence >= counts[2] || row_starts[sequence] >= row_starts[sequence + 1]) {
    wait_for_kernel_before();
    return;
  }
  const u32 first = row_starts[sequence];
  const u32 end = row_starts[sequence + 1];
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
  const f32 head_norm = norm[k_thread.x % HEAD_DIM];
  wait_for_kernel_before();
  const u32 features = (2 * p.delta.n_key_heads + p.delta.n_value_heads) * HEAD_DIM;
  for (u32 row = first; row < end; ++row) {
    const u64 head_of_row = u64(row) * p.delta.n_value_heads + head;
    f32 row_gate = 0.0f;
    if (k_thread.x < HEAD_DIM) {
      row_gate = gate[head_of_row * HEAD_DIM + k_thread.x];
    }
    copy_head(p.delta, qkv + u64(row) * features, head, vectors, k_thread.x);
    if (k_thread.x == DELTA_HEAD_THREADS - 1u) {
      gates[0] = exp_f32(head_rate * softplus_f32(decay_gate[head_of_row] + head_bias));
      gates[1] = sigmoid_f32(write_gate[head_of_row]);
    }
    group_barrier();
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
    if (k_thread.x < HEAD_DIM) {
      const f32 normed = outputs[k_thread.x] * inverse[0] * head_norm;
      y[head_of_row * HEAD_DIM + k_thread.x] = normed * activate_f32(p.activation, row_gate);
    }
    if (row + 1 == end || state_after[row] != state_after[row + 1]) {
      const u64 after = u64(u32(state_after[row])) * p.delta.slot_stride;
      UNROLL for (u32 i = 0; i < HEAD_DIM / 4; ++i) {
        cells_of[after + i * DELTA_CELL_STRIDE] = cells[i];
      }
    }
  }
}

}  // namespace hearth::backend::gpu
