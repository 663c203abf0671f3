#pragma once
/// plan::AttentionBlock over a paged cache (graph/ops/attention.h has the arithmetic). TYPE is that
/// of the cache: f32, f16, bf16, q8_0, q4_0. Few rows: attention_store_TYPE, attention_scores_TYPE,
/// attention_parts_TYPE, attention_combine_f32; of a row that is alone in its step,
/// attention_scores_TYPE does what attention_store_TYPE does. Many rows: attention_store_TYPE,
/// attention_TYPE. Prompts: attention_store_TYPE, attention_rows_TYPE.
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
#define ATTENTION_STORE_THREADS 128
#define ATTENTION_SCORE_THREADS 160
#define ATTENTION_PART_THREADS 128
#define ATTENTION_PART_DIMS 64        // that a threadgroup of attention_parts_TYPE takes at least
#define ATTENTION_COMBINE_THREADS 64  // and dimensions
#define ATTENTION_ROWS_QUERIES 64
#define ATTENTION_ROWS_THREADS 256
#define ATTENTION_ROWS_SCORES (ATTENTION_ROWS_QUERIES * ATTENTION_PART_KEYS)

/// attention_store_TYPE: [norm and rotation of] q, [the same of] k, which goes into the cache with
/// v.
/// Buffers: counts, q [rows, q_features], k and v [rows, n_kv_heads * head_dim], q_norm and k_norm
/// [head_dim], angles (kernels/rope.h), positions, sequences, tables [sequences, table_stride],
/// q_ready [rows, n_heads * head_dim], keys, values. What flags leave out may be any small buffer.
/// Grid (ceil((n_heads + n_kv_heads) / 4), capacity of rows); ATTENTION_STORE_THREADS threads.
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

/// attention_TYPE: buffers: counts, q_ready, positions, sequences, tables, keys, values, y [rows,
/// n_heads * head_dim]. A threadgroup takes all keys of its row, part by part. Grid (1, heads,
/// capacity of rows) with heads = n_kv_heads * ceil(group / served), group = n_heads / n_kv_heads.
/// Threads: 128 to serve 4 heads of a group at once, 256 to serve 8.
///
/// attention_rows_TYPE: the same bits for prompts, whose neighbouring rows share what they read.
/// Buffers: counts, q_ready, positions, sequences, tables, keys, values, scores
/// (ATTENTION_ROWS_SCORES floats for each threadgroup, for its own use), y. Threads
/// ATTENTION_ROWS_THREADS, grid (n_kv_heads, ceil(capacity of rows * group /
/// ATTENTION_ROWS_QUERIES)).
///
/// attention_scores_TYPE (AttentionScoresParams): buffers: those of attention_store_TYPE up to
/// `tables`, where q is q_ready unless the row is alone, keys, values, scores f32 [capacity of
/// rows, n_heads, n_parts * ATTENTION_PART_KEYS]. attention_parts_TYPE: counts, scores, positions,
/// sequences, tables, values, partials f32 [capacity of rows, n_heads, n_parts, head_dim + 2]:
/// weighted values, largest score, sum of weights. Grid of both (heads with served =
/// ATTENTION_MAX_HEADS, capacity of rows, any number), so that those with something to do are the
/// first; ATTENTION_SCORE_THREADS and ATTENTION_PART_THREADS threads.
///
/// attention_combine_f32: buffers: counts, partials, positions, gate, y. With has_gate y is
/// multiplied by activation(gate[row * gate_stride + head * gate_period + gate_start + i]); gate
/// may be any small buffer otherwise. Grid (n_heads * ceil(head_dim / ATTENTION_COMBINE_THREADS),
/// capacity of rows); ATTENTION_COMBINE_THREADS threads.
struct AttentionParams {
  u32 n_heads;
  u32 n_kv_heads;
  u32 head_dim;
  u32 table_stride;
  u32 window;  // keys that a query sees, itself included; 0: all before it
  f32 scale;
  // Of few rows:
  u32 n_parts;   // of ATTENTION_PART_KEYS keys, which cover the longest context
  u32 is_alone;  // the step has one row: keys and values before it are in the cache, its own are
                 // not
  // Threadgroups that run at once, for a run of heads of a row, no more than there are; decides how
  // much of the keys, and of values, a threadgroup takes.
  u32 groups_at_once;
  // Of attention_combine_f32:
  u32 has_gate;
  u32 activation;  // graph::ActivationKind
  u32 gate_stride;
  u32 gate_period;
  u32 gate_start;
};

/// With attention.is_alone a group of heads has at most ATTENTION_MAX_HEADS.
struct AttentionScoresParams {
  AttentionStoreParams heads;
  AttentionParams attention;
};

}  // namespace hearth::backend::gpu
