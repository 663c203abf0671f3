#pragma once
/// A head's memory in registers: four threads own a column of it, thread c the cells whose key
/// dimension is c mod 4, over all rows of the sequence: the four partial sums of the canonical
/// order.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/delta_rule.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define DELTA_ROWS 8u  // that are prepared at once
// From chain to chain of a key or query: the four are read at once, from different banks.
#define DELTA_CHAIN_STRIDE 68u
#define DELTA_VECTOR 272u  // 4 * DELTA_CHAIN_STRIDE
#define HEAD_DIM 128u      // keys and values of kernels that are made for it

/// The two contractions of a column: four partial sums, of which the caller holds one.
DEVICE_FN f32 sum_chains(f32 partial) {
  partial += shuffle_xor(partial, 1);
  return partial + shuffle_xor(partial, 2);
}

DEVICE_FN u32 key_head_of(PARAMS(DeltaRuleParams) p, u32 head) {
  return p.is_tiled != 0u ? head % p.n_key_heads : head / (p.n_value_heads / p.n_key_heads);
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

}  // namespace hearth::backend::gpu
