/// AttentionBlock: q and k are normed and rotated, and k and v stored; then the keys are gone
/// through: in parts of their own, which are folded last, where few rows would leave the device
/// idle.

#include "backend/gpu/executor/recorder.h"
#include "backend/gpu/kernels/attention.h"
#include "base/checked.h"
#include "base/fail.h"
#include "graph/ops/attention.h"

namespace hearth::backend::gpu {
namespace {

static_assert(ATTENTION_PART_KEYS == graph::attention_partition);
static_assert(ATTENTION_BLOCK_KEYS == graph::kv_block_tokens);

constexpr u32 store_threads = 128;
constexpr u32 combine_threads = 128;
/// Up to here keys are split: more rows keep the device busy by themselves.
constexpr u32 max_split_rows = 16;

AttentionStoreParams store_params(const plan::AttentionBlock& block, const Recorder& recorder) {
  const graph::AttentionParams& attention = block.attention;
  AttentionStoreParams params{.n_heads = static_cast<u32>(attention.n_heads),
                              .n_kv_heads = static_cast<u32>(attention.n_kv_heads),
                              .head_dim = static_cast<u32>(attention.head_dim),
                              .table_stride = recorder.context().tables.stride(),
                              .q_features = recorder.features(block.q),
                              .q_period = static_cast<u32>(attention.head_dim),
                              .rope = block.rope ? rope_pairs(*block.rope) : RopePairs{}};
  if (block.q_columns) {
    params.q_period = static_cast<u32>(block.q_columns->period);
    params.q_start = static_cast<u32>(block.q_columns->start);
  }
  if (block.q_norm) {
    params.has_q_norm = 1;
    params.q_eps = block.q_norm->eps;
  }
  if (block.k_norm) {
    params.has_k_norm = 1;
    params.k_eps = block.k_norm->eps;
  }
  return params;
}

/// From here on neighbouring rows share what they read; fewer may well be rows of as many
/// sequences.
constexpr u32 min_shared_rows = 65;

/// Records attention over keys that have been stored, by queries that are ready.
Result<void> record_shared_rows(const plan::AttentionBlock& block, const AttentionParams& params,
                                const BufferPart& q_ready, Recorder& recorder) {
  const StepParts& step = recorder.step();
  const DeviceCaches& caches = recorder.context().caches;
  const auto layer = block.attention.layer;
  HEARTH_ASSIGN(const KernelId kernel,
                kernel_for("attention_rows_", caches.descs().kv.dtype, "the KV cache"));
  const u32 group = params.n_heads / params.n_kv_heads;
  const auto n_groups = static_cast<u32>(
      ceil_div(std::int64_t{recorder.rows(block.q)} * group, ATTENTION_ROWS_QUERIES));
  const BufferPart scores =
      recorder.scratch(std::int64_t{n_groups} * params.n_kv_heads * ATTENTION_ROWS_SCORES * 4);
  recorder.dispatch(
      kernel,
      {step.counts, q_ready, step.positions, step.sequences, recorder.context().tables.part(),
       caches.keys(layer), caches.values(layer), scores, recorder.value(block.output)},
      params, {params.n_kv_heads, n_groups}, ATTENTION_ROWS_THREADS);
  return {};
}

/// Query heads of a group that a threadgroup serves at once.
u32 served_heads(u32 group) {
  return group > ATTENTION_TILE_HEADS ? ATTENTION_MAX_HEADS : ATTENTION_TILE_HEADS;
}

}  // namespace

bool applies_gate(const plan::AttentionBlock& block, const plan::Gate& gate,
                  const Recorder& recorder) {
  return recorder.rows(block.q) <= max_split_rows &&
         (!gate.columns || gate.columns->width == block.attention.head_dim);
}

Result<void> record_attention_block(const plan::AttentionBlock& block, const plan::Gate* gate,
                                    Recorder& recorder) {
  const StepParts& step = recorder.step();
  const DeviceCaches& caches = recorder.context().caches;
  const auto layer = block.attention.layer;
  const DType type = caches.descs().kv.dtype;
  const u32 rows = recorder.rows(block.q);
  if (block.attention.head_dim > ATTENTION_MAX_HEAD_DIM || block.attention.head_dim % 16 != 0) {
    return fail(ErrorCode::unsupported,
                "attention layer {}: no GPU kernel for heads of {} values, expected a multiple of "
                "16 up to {}",
                layer, block.attention.head_dim, ATTENTION_MAX_HEAD_DIM);
  }

  HEARTH_ASSIGN(const KernelId store, kernel_for("attention_store_", type, "the KV cache"));
  const AttentionStoreParams stored = store_params(block, recorder);
  const BufferPart q_ready =
      recorder.scratch(std::int64_t{rows} * stored.n_heads * stored.head_dim * 4);
  recorder.dispatch(
      store,
      {step.counts, recorder.value(block.q), recorder.value(block.k), recorder.value(block.v),
       block.q_norm ? recorder.weight(block.q_norm->weight) : recorder.absent(),
       block.k_norm ? recorder.weight(block.k_norm->weight) : recorder.absent(),
       block.rope ? recorder.context().step.angles(*block.rope) : recorder.absent(), step.positions,
       step.sequences, recorder.context().tables.part(), q_ready, caches.keys(layer),
       caches.values(layer)},
      stored, {stored.n_heads + stored.n_kv_heads, rows}, store_threads);
  recorder.barrier();

  const bool splits_keys = rows <= max_split_rows;
  const std::int64_t longest = caches.descs().kv.n_blocks * graph::kv_block_tokens;
  AttentionParams params{
      .n_heads = stored.n_heads,
      .n_kv_heads = stored.n_kv_heads,
      .head_dim = stored.head_dim,
      .table_stride = stored.table_stride,
      .n_parts = splits_keys ? static_cast<u32>(ceil_div(longest, ATTENTION_PART_KEYS)) : 0,
      .window = static_cast<u32>(block.attention.window),
      .scale = block.attention.scale};
  if (rows >= min_shared_rows) {
    return record_shared_rows(block, params, q_ready, recorder);
  }
  const u32 group = params.n_heads / params.n_kv_heads;
  const u32 served = served_heads(group);
  HEARTH_ASSIGN(const KernelId attend, kernel_for("attention_", type, "the KV cache"));
  const BufferPart y = recorder.value(block.output);
  const BufferPart out = splits_keys ? recorder.scratch(std::int64_t{rows} * params.n_heads *
                                                        params.n_parts * (params.head_dim + 2) * 4)
                                     : y;
  recorder.dispatch(
      attend,
      {step.counts, q_ready, step.positions, step.sequences, recorder.context().tables.part(),
       caches.keys(layer), caches.values(layer), out},
      params,
      {std::max(params.n_parts, 1u), params.n_kv_heads * static_cast<u32>(ceil_div(group, served)),
       rows},
      32 * served);
  if (splits_keys) {
    if (gate != nullptr) {
      params.has_gate = 1;
      params.activation = static_cast<u32>(gate->kind);
      params.gate_stride = recorder.features(gate->value);
      params.gate_period =
          gate->columns ? static_cast<u32>(gate->columns->period) : params.head_dim;
      params.gate_start = gate->columns ? static_cast<u32>(gate->columns->start) : 0;
    }
    recorder.barrier();
    recorder.dispatch(KernelId::attention_combine_f32,
                      {step.counts, out, step.positions,
                       gate != nullptr ? recorder.value(gate->value) : recorder.absent(), y},
                      params, {params.n_heads, rows}, combine_threads);
  }
  return {};
}

}  // namespace hearth::backend::gpu
