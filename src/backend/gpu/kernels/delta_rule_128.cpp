// As delta_rule.cpp, for prompts: the chains of a row's query and of the next row's key run side by
// side, and a cell is touched once for both. One half of the threads has the cells, the other
// prepares the rows to come meanwhile. Bound by the chains of multiply-adds.

#include "backend/gpu/kernels/delta_cells.h"

namespace hearth::backend::gpu {

#define HEAD_CHAIN 32u         // HEAD_DIM / 4
#define HEAD_CHAIN_STRIDE 36u  // different banks for the chains, and room for the gates
#define HEAD_VECTOR 144u       // 4 * HEAD_CHAIN_STRIDE; a key's banks are not those of its query
#define OWN_ROWS 2u            // of a lot, that a simdgroup prepares

/// Whose rows a thread reads.
struct DeltaHead {
  u32 head;
  u32 key_head;
  u32 value_column;  // of all heads' columns
  u32 end;           // of the sequence's rows
};

/// What a thread has read of the rows to come: of both rows that its simdgroup prepares every 16th
/// element, of the query in the lower 16 lanes and of the key in the upper; the values of its
/// column in rows thread % 4 and 4 more; the gates of row lane % OWN_ROWS of its simdgroup; where
/// the memory goes after row thread % DELTA_ROWS and after the next.
struct DeltaAhead {
  f32 vectors[OWN_ROWS][HEAD_DIM / N_LANES];
  f32 values[OWN_ROWS];
  f32 write_gate;
  f32 decay_gate;
  i32 target;
  i32 next_target;  // -1 for the last row
};

/// Reads the rows at `first`, OWN_ROWS for every simdgroup; rows from `end` on are the last again.
/// Nothing here waits for what it reads.
DEVICE_FN void read_ahead(PARAMS(DeltaRuleParams) p, u32 first, DeltaHead of, DEVICE(const f32) qkv,
                          DEVICE(const f32) write_gate, DEVICE(const f32) decay_gate,
                          DEVICE(const i32) state_after, u32 thread_id,
                          THREAD_REF(DeltaAhead) ahead) {
  const u32 key_features = p.n_key_heads * HEAD_DIM;
  const u64 features = 2 * key_features + p.n_value_heads * p.value_dim;
  const u32 last = of.end - 1;
  const u32 own = first + thread_id / 32 * OWN_ROWS;
  const u32 from =
      thread_id % 32 / N_LANES * key_features + of.key_head * HEAD_DIM + thread_id % N_LANES;
  UNROLL for (u32 i = 0; i < OWN_ROWS; ++i) {
    const u64 row = min_u32(own + i, last);
    UNROLL for (u32 step = 0; step < HEAD_DIM / N_LANES; ++step) {
      ahead.vectors[i][step] = qkv[row * features + from + step * N_LANES];
    }
  }
  UNROLL for (u32 i = 0; i < OWN_ROWS; ++i) {
    const u64 row = min_u32(first + thread_id % 4 + 4 * i, last);
    ahead.values[i] = qkv[row * features + 2 * key_features + of.value_column];
  }
  const u32 row = min_u32(own + thread_id % OWN_ROWS, last);
  ahead.write_gate = write_gate[u64(row) * p.n_value_heads + of.head];
  ahead.decay_gate = decay_gate[u64(row) * p.n_value_heads + of.head];
  const u32 kept_row = min_u32(first + thread_id % DELTA_ROWS, last);
  ahead.target = state_after[kept_row];
  ahead.next_target = kept_row < last ? state_after[kept_row + 1] : -1;
}

/// What was read ahead as rows of shared memory: vectors [rows][query, key][4][HEAD_CHAIN_STRIDE],
/// values [rows][DELTA_RULE_MAX_COLUMNS]. Behind each chain of a key are the row's decay and beta;
/// are_kept [DELTA_ROWS] is whether the memory after a row is.
DEVICE_FN void prepare_ahead(THREAD_REF(const DeltaAhead) ahead, f32 query_scale, f32 rate,
                             f32 bias, SHARED(f32) vectors, SHARED(f32) values,
                             SHARED(u32) are_kept, u32 n_rows, u32 thread_id) {
  const f32 epsilon = 1.0e-6f;  // of graph::unit_vector
  f32 squares[OWN_ROWS];
  UNROLL for (u32 i = 0; i < OWN_ROWS; ++i) {
    f32 partial = 0.0f;
    UNROLL for (u32 step = 0; step < HEAD_DIM / N_LANES; ++step) {
      partial = fma_f32(ahead.vectors[i][step], ahead.vectors[i][step], partial);
    }
    squares[i] = sum_lanes(partial);
  }
  // Even lanes have the first row's, odd ones the second's.
  const u32 own_row = thread_id % OWN_ROWS;
  const f32 inverse = 1.0f / sqrt_f32((own_row == 0u ? squares[0] : squares[1]) + epsilon);
  const f32 other_inverse = shuffle_xor(inverse, 1);
  const u32 own = thread_id / 32 * OWN_ROWS;
  const u32 lane = thread_id % N_LANES;
  const bool is_key = thread_id % 32 >= N_LANES;
  const f32 scale = is_key ? 1.0f : query_scale;
  UNROLL for (u32 i = 0; i < OWN_ROWS; ++i) {
    const f32 row_inverse = own_row == i ? inverse : other_inverse;
    const u32 to = (2 * (own + i) + (is_key ? 1u : 0u)) * HEAD_VECTOR +
                   lane % 4 * HEAD_CHAIN_STRIDE + lane / 4;
    UNROLL for (u32 step = 0; step < HEAD_DIM / N_LANES; ++step) {
      vectors[to + step * (N_LANES / 4)] = ahead.vectors[i][step] * row_inverse * scale;
    }
    const u32 value_row = thread_id % 4 + 4 * i;
    if (value_row < n_rows) {
      values[value_row * DELTA_RULE_MAX_COLUMNS + thread_id / 4] = ahead.values[i];
    }
  }
  const f32 decay = exp_f32(rate * softplus_f32(ahead.decay_gate + bias));
  const f32 beta = sigmoid_f32(ahead.write_gate);
  if (thread_id % 32 < 4 * OWN_ROWS) {
    const u32 key = (2 * (own + own_row) + 1) * HEAD_VECTOR;
    const u32 gates = key + thread_id % 32 / OWN_ROWS * HEAD_CHAIN_STRIDE + HEAD_CHAIN;
    vectors[gates] = decay;
    vectors[gates + 1] = beta;
  }
  if (thread_id < DELTA_ROWS) {
    are_kept[thread_id] = ahead.target != ahead.next_target ? 1u : 0u;
  }
}

/// A row begins: cells decay and meet its key, which is kept for update_cells.
DEVICE_FN f32 decay_cells(SHARED(const f32) next_key, THREAD(f32) key, THREAD(f32) cells) {
  const f32 decay = next_key[HEAD_CHAIN];
  f32 partial = 0.0f;
  UNROLL for (u32 i = 0; i < HEAD_CHAIN; ++i) {
    key[i] = next_key[i];
    cells[i] = cells[i] * decay;
    partial = fma_f32(cells[i], key[i], partial);
  }
  return partial;
}

/// A row ends: cells take in what was missing, and meet its query.
DEVICE_FN f32 update_cells(SHARED(const f32) query, f32 delta, THREAD(const f32) key,
                           THREAD(f32) cells) {
  f32 partial = 0.0f;
  UNROLL for (u32 i = 0; i < HEAD_CHAIN; ++i) {
    cells[i] = fma_f32(key[i], delta, cells[i]);
    partial = fma_f32(cells[i], query[i], partial);
  }
  return partial;
}

/// The caller's partial sums of a row's key and of the query of the row before.
struct DeltaPartials {
  f32 key;
  f32 query;
};

/// What comes of those: what the cells take in, and what the row before gives.
struct DeltaStep {
  f32 delta;
  f32 out_before;
};

DEVICE_FN DeltaStep sum_partials(DeltaPartials partials, f32 value, f32 beta) {
  DeltaStep step;
  step.delta = beta * (value - sum_chains(partials.key));
  step.out_before = sum_chains(partials.query);
  return step;
}

/// update_cells, then decay_cells for the next row, cell by cell.
DEVICE_FN DeltaPartials step_cells(SHARED(const f32) query, f32 delta, SHARED(const f32) next_key,
                                   THREAD(f32) key, THREAD(f32) cells) {
  const f32 next_decay = next_key[HEAD_CHAIN];
  DeltaPartials partials;
  partials.query = 0.0f;
  partials.key = 0.0f;
  UNROLL for (u32 i = 0; i < HEAD_CHAIN; ++i) {
    const f32 cell = fma_f32(key[i], delta, cells[i]);
    partials.query = fma_f32(cell, query[i], partials.query);
    key[i] = next_key[i];
    cells[i] = cell * next_decay;
    partials.key = fma_f32(cells[i], key[i], partials.key);
  }
  return partials;
}

// Shared memory is a ring of three lots of rows: those at work, the next, of which the last row at
// work needs the first, and those that are being prepared. A memory that is kept is stored before
// the next row decays it. What a row gives is summed with the next row's key, whose shuffles hide
// it.
#define DELTA_LOTS 3u
KERNEL(delta_rule_128_f32, 256, DeltaRuleParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, qkv), BUFFER(2, const f32, write_gate),
       BUFFER(3, const f32, decay_gate), BUFFER(4, const f32, rate), BUFFER(5, const f32, bias),
       BUFFER(6, const u32, row_starts), BUFFER(7, const i32, positions),
       BUFFER(8, const i32, state_before), BUFFER(9, const i32, state_after),
       BUFFER(10, f32, memory), BUFFER(11, f32, y)) {
  SHARED_ARRAY(f32, vectors, (DELTA_LOTS * DELTA_ROWS * 2 * HEAD_VECTOR));
  SHARED_ARRAY(f32, values, (DELTA_LOTS * DELTA_ROWS * DELTA_RULE_MAX_COLUMNS));
  SHARED_ARRAY(u32, are_kept, DELTA_LOTS * DELTA_ROWS);
  const u32 sequence = k_group.z;
  if (sequence >= counts[2] || row_starts[sequence] >= row_starts[sequence + 1]) {
    return;
  }
  const u32 first = row_starts[sequence];
  const u32 end = row_starts[sequence + 1];
  const u32 head = k_group.y;
  const u32 n_owners = k_group_size.x / 2;  // of cells; the others prepare
  const bool is_owner = k_thread.x < n_owners;
  const u32 own_thread = is_owner ? k_thread.x : k_thread.x - n_owners;
  const u32 column = own_thread / 4;  // of the threadgroup
  const u32 head_column = k_group.x * (n_owners / 4) + column;
  DeltaHead of;
  of.head = head;
  of.key_head = key_head_of(p, head);
  of.value_column = head * p.value_dim + head_column;
  of.end = end;
  const u32 chain = own_thread % 4;
  const u32 lot = n_owners / 32 * OWN_ROWS;  // rows, at most DELTA_ROWS
  DeltaAhead ahead;
  DEVICE(f32) cells_of = memory + first_cell(p, head, head_column, chain);
  f32 cells[HEAD_CHAIN];
  f32 key[HEAD_CHAIN];
  DeltaPartials partials;
  partials.key = 0.0f;
  partials.query = 0.0f;
  const f32 own_rate = rate[head];
  const f32 own_bias = bias[head];
  if (is_owner) {
    const bool is_new = positions[first] == 0;
    const u64 before = u64(u32(state_before[first])) * p.slot_stride;
    UNROLL for (u32 i = 0; i < HEAD_CHAIN; ++i) {
      cells[i] = is_new ? 0.0f : cells_of[before + i * DELTA_CELL_STRIDE];
    }
  } else {
    read_ahead(p, first, of, qkv, write_gate, decay_gate, state_after, own_thread, ahead);
  }
  for (u32 i = 0; i < DELTA_LOTS - 1; ++i) {
    if (!is_owner && first + i * lot < end) {
      prepare_ahead(ahead, p.query_scale, own_rate, own_bias, vectors + i * lot * (2 * HEAD_VECTOR),
                    values + i * lot * DELTA_RULE_MAX_COLUMNS, are_kept + i * DELTA_ROWS, lot,
                    own_thread);
      read_ahead(p, min_u32(first + (i + 1) * lot, end - 1), of, qkv, write_gate, decay_gate,
                 state_after, own_thread, ahead);
    }
  }
  group_barrier();
  SHARED(const f32) chains = vectors + chain * HEAD_CHAIN_STRIDE;
  f32 beta = 0.0f;
  if (is_owner) {
    partials.key = decay_cells(chains + HEAD_VECTOR, key, cells);
    beta = chains[HEAD_VECTOR + HEAD_CHAIN + 1];
  }
  const u64 y_features = p.n_value_heads * p.value_dim;
  u32 turn = 0;  // of the lots: the one at work
  for (u32 lot_first = first; lot_first < end; lot_first += lot) {
    if (!is_owner) {
      const u32 to = turn == 0u ? DELTA_LOTS - 1u : turn - 1u;
      if (lot_first + (DELTA_LOTS - 1u) * lot < end) {
        prepare_ahead(ahead, p.query_scale, own_rate, own_bias,
                      vectors + to * lot * (2 * HEAD_VECTOR),
                      values + to * lot * DELTA_RULE_MAX_COLUMNS, are_kept + to * DELTA_ROWS, lot,
                      own_thread);
        read_ahead(p, min_u32(lot_first + DELTA_LOTS * lot, end - 1), of, qkv, write_gate,
                   decay_gate, state_after, own_thread, ahead);
      }
    } else {
      u32 kept = 0;  // a bit for each row
      UNROLL for (u32 i = 0; i < DELTA_ROWS; ++i) {
        kept |= are_kept[turn * DELTA_ROWS + i] << i;
      }
      const u32 n_rows = min_u32(end - lot_first, lot);
      u32 at = turn * lot;  // the row at work in shared memory
      for (u32 i = 0; i < n_rows; ++i) {
        const u32 row = lot_first + i;
        const u32 next = at + 1 < DELTA_LOTS * lot ? at + 1 : 0u;
        const f32 value = values[at * DELTA_RULE_MAX_COLUMNS + column];
        SHARED(const f32) query = chains + at * (2 * HEAD_VECTOR);
        SHARED(const f32) next_key = chains + (next * (2 * HEAD_VECTOR) + HEAD_VECTOR);
        // The sums are in both branches: behind them, the cells' loads would wait for the shuffles.
        DeltaStep step;
        if ((kept & 1u) == 0u) {
          step = sum_partials(partials, value, beta);
          beta = next_key[HEAD_CHAIN + 1];
          partials = step_cells(query, step.delta, next_key, key, cells);
        } else {
          step = sum_partials(partials, value, beta);
          partials.query = update_cells(query, step.delta, key, cells);
          const u64 after = u64(u32(state_after[row])) * p.slot_stride;
          UNROLL for (u32 j = 0; j < HEAD_CHAIN; ++j) {
            cells_of[after + j * DELTA_CELL_STRIDE] = cells[j];
          }
          if (row + 1 < end) {
            beta = next_key[HEAD_CHAIN + 1];
            partials.key = decay_cells(next_key, key, cells);
          }
        }
        if (chain == 0 && row > first) {
          y[u64(row - 1) * y_features + of.value_column] = step.out_before;
        }
        at = next;
        kept >>= 1;
      }
    }
    group_barrier();  // these rows have been used, and others are there
    turn = turn + 1 < DELTA_LOTS ? turn + 1 : 0u;
  }
  const f32 out = sum_chains(partials.query);
  if (is_owner && chain == 0) {
    y[u64(end - 1) * y_features + of.value_column] = out;
  }
}

}  // namespace hearth::backend::gpu
