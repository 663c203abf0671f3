#pragma once
/// Softmax attention of decoded rows over a paged cache of f16 keys and values
/// (graph/ops/attention.h).
///
/// Cache of a layer, keys and values alike: [block][kv head][16 positions][head_dim].
/// Keys are taken in parts at absolute multiples of ATTENTION_PART_KEYS, whatever the length of the
/// sequence, so a row's result does not depend on how far others are, nor on windows of guesses.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define ATTENTION_PART_KEYS 64
#define ATTENTION_BLOCK_KEYS 16  // graph::kv_block_tokens
#define ATTENTION_MAX_HEAD_DIM 256

/// kv_store_f16: rounds and stores the keys and values of every row. k, v [rows, n_kv_heads *
/// head_dim]; positions, sequences [rows]; tables [sequences, table_stride]. A threadgroup per row.
struct KvStoreParams {
  u32 n_kv_heads;
  u32 head_dim;
  u32 table_stride;
};

/// attention_part_f16, grid (n_parts, n_heads, rows), 128 threads: partial results of each part.
/// q [rows, n_heads * head_dim]; partial [rows, n_heads, n_parts, head_dim + 2]: the largest score,
/// the sum of weights, the weighted values.
/// attention_combine_f32, grid (n_heads, rows), 128 threads: adds the parts up in order.
/// y [rows, n_heads * head_dim].
struct AttentionPartParams {
  u32 n_heads;
  u32 n_kv_heads;  // divides n_heads
  u32 head_dim;    // a multiple of 32, at most ATTENTION_MAX_HEAD_DIM
  u32 n_parts;     // covers the longest sequence
  u32 table_stride;
  u32 window;  // keys that a query sees, itself included; 0: all before it
  f32 scale;
};

}  // namespace hearth::backend::gpu
