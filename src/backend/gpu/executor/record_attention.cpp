/// AttentionBlock. Of many rows q and k are normed and rotated, and k and v stored; then a
/// threadgroup goes through the keys of a row, or of neighbouring rows of a prompt. Few rows would
/// leave the device idle so: scores, what parts of the keys give, and their sum are launches of
/// their own, each of as many threadgroups as there is work for; of a row alone the first of them
/// stores, too.

#include "backend/gpu/executor/recorder.h"
#include "backend/gpu/kernels/attention.h"
#include "base/checked.h"
#include "base/fail.h"
#include "graph/ops/attention.h"

namespace hearth::backend::gpu {
namespace {

static_assert(ATTENTION_PART_KEYS == graph::attention_partition);
static_assert(ATTENTION_BLOCK_KEYS == graph::kv_block_tokens);

/// Up to here keys are split: more rows keep the device busy by themselves.
constexpr u32 max_split_rows = 16;
/// Of threadgroups that go through tiles of keys or parts, so many for each compute unit, of which
/// it runs so many at once.
constexpr u32 key_groups_per_unit = 4;
constexpr u32 key_groups_at_once = 2;

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

/// Query heads of a group that a threadgroup serves at once.
u32 served_heads(u32 group) {
  return group > ATTENTION_TILE_HEADS ? ATTENTION_MAX_HEADS : ATTENTION_TILE_HEADS;
}

u32 n_runs(u32 group, u32 served) {
  return static_cast<u32>(ceil_div(group, served));
}

AttentionParams attention_params(const plan::AttentionBlock& block, const Recorder& recorder) {
  const graph::AttentionParams& attention = block.attention;
  const std::int64_t longest =
      recorder.context().caches.descs().kv.n_blocks * graph::kv_block_tokens;
  return {.n_heads = static_cast<u32>(attention.n_heads),
          .n_kv_heads = static_cast<u32>(attention.n_kv_heads),
          .head_dim = static_cast<u32>(attention.head_dim),
          .table_stride = recorder.context().tables.stride(),
          .window = static_cast<u32>(attention.window),
          .scale = attention.scale,
          .n_parts = static_cast<u32>(ceil_div(longest, ATTENTION_PART_KEYS))};
}

void set_gate(const plan::Gate& gate, const Recorder& recorder, AttentionParams& params) {
  params.has_gate = 1;
  params.activation = static_cast<u32>(gate.kind);
  params.gate_stride = recorder.features(gate.value);
  params.gate_period = gate.columns ? static_cast<u32>(gate.columns->period) : params.head_dim;
  params.gate_start = gate.columns ? static_cast<u32>(gate.columns->start) : 0;
}

/// Buffers of attention_store_TYPE and attention_scores_TYPE up to the block tables.
std::vector<BufferPart> head_buffers(const plan::AttentionBlock& block, BufferPart q,
                                     const Recorder& recorder) {
  return {recorder.step().counts,
          std::move(q),
          recorder.value(block.k),
          recorder.value(block.v),
          block.q_norm ? recorder.weight(block.q_norm->weight) : recorder.absent(),
          block.k_norm ? recorder.weight(block.k_norm->weight) : recorder.absent(),
          block.rope ? recorder.context().step.angles(*block.rope) : recorder.absent(),
          recorder.step().positions,
          recorder.step().sequences,
          recorder.context().tables.part()};
}

/// The kernels of a block, for the type of the cache.
struct AttentionKernels {
  KernelId store, many_rows, shared_rows, scores, parts;
};

Result<AttentionKernels> attention_kernels(DType type) {
  constexpr std::string_view what = "the KV cache";
  HEARTH_ASSIGN(const KernelId store, kernel_for("attention_store_", type, what));
  HEARTH_ASSIGN(const KernelId many_rows, kernel_for("attention_", type, what));
  HEARTH_ASSIGN(const KernelId shared_rows, kernel_for("attention_rows_", type, what));
  HEARTH_ASSIGN(const KernelId scores, kernel_for("attention_scores_", type, what));
  HEARTH_ASSIGN(const KernelId parts, kernel_for("attention_parts_", type, what));
  return AttentionKernels{store, many_rows, shared_rows, scores, parts};
}

/// Returns the queries as the next launch takes them.
BufferPart record_store(const plan::AttentionBlock& block, KernelId kernel, Recorder& recorder) {
  const DeviceCaches& caches = recorder.context().caches;
  const AttentionStoreParams params = store_params(block, recorder);
  const u32 rows = recorder.rows(block.q);
  BufferPart q_ready = recorder.scratch(std::int64_t{rows} * params.n_heads * params.head_dim * 4);
  std::vector<BufferPart> buffers = head_buffers(block, recorder.value(block.q), recorder);
  buffers.insert(buffers.end(), {q_ready, caches.keys(block.attention.layer),
                                 caches.values(block.attention.layer)});
  const u32 groups =
      static_cast<u32>(ceil_div(params.n_heads + params.n_kv_heads, ATTENTION_STORE_THREADS / 32));
  recorder.dispatch(kernel, std::move(buffers), params, {groups, rows}, ATTENTION_STORE_THREADS);
  recorder.barrier();
  return q_ready;
}

void record_many_rows(const plan::AttentionBlock& block, const AttentionKernels& kernels,
                      Recorder& recorder) {
  const BufferPart q_ready = record_store(block, kernels.store, recorder);
  const DeviceCaches& caches = recorder.context().caches;
  const AttentionParams params = attention_params(block, recorder);
  const u32 rows = recorder.rows(block.q);
  const u32 group = params.n_heads / params.n_kv_heads;
  std::vector<BufferPart> buffers{recorder.step().counts,
                                  q_ready,
                                  recorder.step().positions,
                                  recorder.step().sequences,
                                  recorder.context().tables.part(),
                                  caches.keys(block.attention.layer),
                                  caches.values(block.attention.layer)};
  if (rows >= min_prompt_rows) {
    const auto n_groups =
        static_cast<u32>(ceil_div(std::int64_t{rows} * group, ATTENTION_ROWS_QUERIES));
    buffers.push_back(
        recorder.scratch(std::int64_t{n_groups} * params.n_kv_heads * ATTENTION_ROWS_SCORES * 4));
    buffers.push_back(recorder.value(block.output));
    recorder.dispatch(kernels.shared_rows, std::move(buffers), params,
                      {params.n_kv_heads, n_groups}, ATTENTION_ROWS_THREADS);
    return;
  }
  const u32 served = served_heads(group);
  buffers.push_back(recorder.value(block.output));
  recorder.dispatch(kernels.many_rows, std::move(buffers), params,
                    {1, params.n_kv_heads * n_runs(group, served), rows}, 32 * served);
}

void record_few_rows(const plan::AttentionBlock& block, const plan::Gate* gate,
                     const AttentionKernels& kernels, Recorder& recorder) {
  const StepParts& step = recorder.step();
  const BufferPart& keys = recorder.context().caches.keys(block.attention.layer);
  const BufferPart& values = recorder.context().caches.values(block.attention.layer);
  const u32 rows = recorder.rows(block.q);
  AttentionScoresParams params{store_params(block, recorder), attention_params(block, recorder)};
  const u32 group = params.heads.n_heads / params.heads.n_kv_heads;
  params.attention.is_alone = rows == 1 && group <= ATTENTION_MAX_HEADS ? 1 : 0;
  const BufferPart q = params.attention.is_alone != 0
                           ? recorder.value(block.q)
                           : record_store(block, kernels.store, recorder);

  const std::int64_t n_records =
      std::int64_t{rows} * params.heads.n_heads * params.attention.n_parts;
  const BufferPart scores = recorder.scratch(n_records * ATTENTION_PART_KEYS * 4);
  const BufferPart partials = recorder.scratch(n_records * (params.heads.head_dim + 2) * 4);
  const u32 heads = params.heads.n_kv_heads * n_runs(group, ATTENTION_MAX_HEADS);
  const u32 compute_units = recorder.device().compute_units;
  const u32 most_groups = std::max(key_groups_per_unit * compute_units / (heads * rows), 1u);
  params.attention.groups_at_once = key_groups_at_once * compute_units / (heads * rows);
  const auto at_most = [most_groups](u32 n) { return std::min(n, most_groups); };

  std::vector<BufferPart> buffers = head_buffers(block, q, recorder);
  buffers.insert(buffers.end(), {keys, values, scores});
  recorder.dispatch(kernels.scores, std::move(buffers), params,
                    {heads, rows, at_most(params.attention.n_parts * (ATTENTION_PART_KEYS / 32))},
                    ATTENTION_SCORE_THREADS);
  recorder.barrier();
  const u32 n_slices = static_cast<u32>(ceil_div(params.heads.head_dim, ATTENTION_PART_DIMS));
  recorder.dispatch(kernels.parts,
                    {step.counts, scores, step.positions, step.sequences,
                     recorder.context().tables.part(), values, partials},
                    params.attention,
                    {heads, rows, at_most(params.attention.n_parts * n_slices * 2)},
                    ATTENTION_PART_THREADS);
  recorder.barrier();
  if (gate != nullptr) {
    set_gate(*gate, recorder, params.attention);
  }
  recorder.dispatch(KernelId::attention_combine_f32,
                    {step.counts, partials, step.positions,
                     gate != nullptr ? recorder.value(gate->value) : recorder.absent(),
                     recorder.value(block.output)},
                    params.attention,
                    {params.heads.n_heads * static_cast<u32>(ceil_div(params.heads.head_dim,
                                                                      ATTENTION_COMBINE_THREADS)),
                     rows},
                    ATTENTION_COMBINE_THREADS);
}

}  // namespace

bool applies_gate(const plan::AttentionBlock& block, const plan::Gate& gate,
                  const Recorder& recorder) {
  return recorder.rows(block.q) <= max_split_rows &&
         (!gate.columns || gate.columns->width == block.attention.head_dim);
}

Result<void> record_attention_block(const plan::AttentionBlock& block, const plan::Gate* gate,
                                    Recorder& recorder) {
  if (block.attention.head_dim > ATTENTION_MAX_HEAD_DIM || block.attention.head_dim % 16 != 0) {
    return fail(ErrorCode::unsupported,
                "attention layer {}: no GPU kernel for heads of {} values, expected a multiple of "
                "16 up to {}",
                block.attention.layer, block.attention.head_dim, ATTENTION_MAX_HEAD_DIM);
  }
  HEARTH_ASSIGN(const AttentionKernels kernels,
                attention_kernels(recorder.context().caches.descs().kv.dtype));
  if (recorder.rows(block.q) <= max_split_rows) {
    record_few_rows(block, gate, kernels, recorder);
  } else {
    record_many_rows(block, kernels, recorder);
  }
  return {};
}

}  // namespace hearth::backend::gpu
