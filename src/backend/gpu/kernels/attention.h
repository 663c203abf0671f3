#pragma once
/// plan::AttentionBlock over a paged cache (graph/ops/attention.h has the arithmetic): three
/// launches, attention_store_TYPE, attention_TYPE and, where keys are split, attention_combine_f32.
/// TYPE is that of the cache: f32, f16, bf16, q8_0, q4_0.
///
/// Cache of a layer: two buffers, each n_blocks * n_kv_heads panels; panel (block, kv head) holds
/// 16 positions of one head in 16 * (bytes of head_dim values in that type) bytes, at a multiple of
/// 16. KV_* below: how the values lie in a panel.

#include "backend/gpu/dialect/scalars.h"
#include "backend/gpu/kernels/rope.h"

namespace hearth::backend::gpu {

#define ATTENTION_PART_KEYS 512  // graph::attention_partition
#define ATTENTION_BLOCK_KEYS 16  // graph::kv_block_tokens
#define ATTENTION_MAX_HEAD_DIM 256
#define ATTENTION_TILE_HEADS 4  // query heads that 128 threads serve at once
#define ATTENTION_MAX_HEADS 8   // query heads that a threadgroup serves
#define ATTENTION_ROWS_QUERIES 64
#define ATTENTION_ROWS_THREADS 256
#define ATTENTION_ROWS_SCORES (ATTENTION_ROWS_QUERIES * ATTENTION_PART_KEYS)

/// attention_store_TYPE: [norm and rotation of] q, [the same of] k, which goes into the cache with
/// v.
/// Buffers: counts, q [rows, q_features], k and v [rows, n_kv_heads * head_dim], q_norm and k_norm
/// [head_dim], angles (kernels/rope.h), positions, sequences, tables [sequences, table_stride],
/// q_ready [rows, n_heads * head_dim], keys, values. What flags leave out may be any small buffer.
/// Grid (n_heads + n_kv_heads, capacity of rows); threads a multiple of 32, at most 128.
struct AttentionStoreParams {
  u32 n_heads;
  u32 n_kv_heads;  // divides n_heads
  u32 head_dim;    // a multiple of 16, at most ATTENTION_MAX_HEAD_DIM; of 32 for q8_0 and q4_0
  u32 table_stride;
  // Head h of q is its columns q_start + h * q_period, ... (plan::AttentionBlock::q_columns);
  // head_dim and 0 without a pattern.
  u32 q_features;
  u32 q_period;
  u32 q_start;
  u32 has_q_norm;
  u32 has_k_norm;
  f32 q_eps;
  f32 k_eps;
  RopePairs rope;
};

/// attention_TYPE: buffers: counts, q_ready, positions, sequences, tables, keys, values, out.
/// With split keys, for few rows: a threadgroup per part of ATTENTION_PART_KEYS keys; out is
/// partials f32 [capacity of rows, n_heads, n_parts, head_dim + 2] (weighted values, largest score,
/// sum of weights), and attention_combine_f32 makes y of them. Grid (n_parts, heads, capacity of
/// rows), where n_parts covers the longest context.
/// Without (n_parts = 0), for many rows: a threadgroup takes all keys of its row, part by part; out
/// is y [rows, n_heads * head_dim]. Grid (1, heads, capacity of rows).
/// heads: n_kv_heads * ceil(group / served) with group = n_heads / n_kv_heads. Threads: 128 to
/// serve 4 heads of a group at once, 256 to serve 8. What comes out is the same bits in all cases.
///
/// attention_rows_TYPE: the same bits for prompts, whose neighbouring rows share what they read.
/// n_parts is not looked at. Buffers: counts, q_ready, positions, sequences, tables, keys, values,
/// scores (ATTENTION_ROWS_SCORES floats for each threadgroup, for its own use), y. Threads
/// ATTENTION_ROWS_THREADS, grid (n_kv_heads, ceil(capacity of rows * group /
/// ATTENTION_ROWS_QUERIES)).
///
/// attention_combine_f32: buffers: counts, partials, positions, gate, y. With has_gate y is
/// multiplied by activation(gate[row * gate_stride + head * gate_period + gate_start + i]); gate
/// may be any small buffer otherwise. Grid (n_heads, capacity of rows); threads a multiple of 32,
/// at most 256.
struct AttentionParams {
  u32 n_heads;
  u32 n_kv_heads;
  u32 head_dim;
  u32 table_stride;
  u32 n_parts;  // 0: keys are not split
  u32 window;   // keys that a query sees, itself included; 0: all before it
  f32 scale;
  // Of attention_combine_f32:
  u32 has_gate;
  u32 activation;  // graph::ActivationKind
  u32 gate_stride;
  u32 gate_period;
  u32 gate_start;
};

}  // namespace hearth::backend::gpu
