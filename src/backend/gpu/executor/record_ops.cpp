/// NormAdd, and every op that is a launch of its own.

#include <algorithm>
#include <cmath>
#include <variant>

#include "backend/gpu/executor/recorder.h"
#include "backend/gpu/kernels/argmax.h"
#include "backend/gpu/kernels/causal_conv.h"
#include "backend/gpu/kernels/delta_rule.h"
#include "backend/gpu/kernels/elementwise.h"
#include "backend/gpu/kernels/embed.h"
#include "backend/gpu/kernels/rms_norm.h"
#include "backend/gpu/kernels/rope.h"
#include "backend/gpu/kernels/router.h"
#include "backend/gpu/kernels/row_moves.h"
#include "backend/gpu/kernels/top_k.h"
#include "base/checked.h"
#include "base/fail.h"
#include "graph/ops/column_value.h"

namespace hearth::backend::gpu {
namespace {

constexpr u32 row_threads = 256;

u32 groups_for(std::int64_t n) {
  return static_cast<u32>(ceil_div(n, row_threads));
}

/// Sequences that a step has at most: each has a slot of recurrent state for itself. Threadgroups
/// for more would have nothing to do, which costs more than a prompt's work.
u32 sequence_capacity(u32 rows, const Recorder& recorder) {
  const std::int64_t n_slots = recorder.context().caches.descs().states.n_slots;
  return static_cast<u32>(std::clamp<std::int64_t>(n_slots, 1, rows));
}

/// Threadgroups that share a sequence's rows: more would have few of them, or, of many sequences,
/// nothing to do.
u32 conv_shares(u32 rows, u32 n_sequences) {
  constexpr u32 share_rows = 128;
  constexpr u32 max_shares = 32;
  return std::clamp(rows / share_rows, 1u, std::max(max_shares / n_sequences, 1u));
}

DeltaRuleParams delta_params(const graph::DeltaRuleParams& delta, const Recorder& recorder) {
  return {.n_key_heads = static_cast<u32>(delta.n_key_heads),
          .n_value_heads = static_cast<u32>(delta.n_value_heads),
          .key_dim = static_cast<u32>(delta.key_dim),
          .value_dim = static_cast<u32>(delta.value_dim),
          .is_tiled = delta.order == graph::HeadOrder::tiled ? 1u : 0u,
          .query_scale = 1.0f / std::sqrt(static_cast<float>(delta.key_dim)),
          .slot_stride = recorder.context().caches.slot_stride()};
}

/// The buffers of a delta_rule kernel, with what its variant has in front of the memory.
std::vector<BufferPart> delta_buffers(const graph::DeltaRule& op, const plan::OpLaunch& launch,
                                      const std::vector<BufferPart>& others,
                                      const Recorder& recorder) {
  const StepParts& step = recorder.step();
  std::vector<BufferPart> buffers{step.counts};
  for (const auto input : launch.inputs) {
    buffers.push_back(recorder.value(input));
  }
  buffers.insert(buffers.end(),
                 {recorder.weight(op.rate), recorder.weight(op.bias), step.row_starts,
                  step.positions, step.state_before, step.state_after});
  buffers.insert(buffers.end(), others.begin(), others.end());
  buffers.insert(buffers.end(), {recorder.context().caches.memory(op.params.layer),
                                 recorder.value(launch.output)});
  return buffers;
}

/// Plans with fusion have none of these on their own.
template <class Op>
Result<void> refuse(const Op& op) {
  return fail(ErrorCode::unsupported, "the GPU backend has no kernel for op '{}' on its own",
              op.name);
}

struct RecordOp {
  const plan::OpLaunch& launch;
  Recorder& recorder;

  [[nodiscard]] graph::ValueId input(std::size_t i) const { return launch.inputs[i]; }
  [[nodiscard]] BufferPart x(std::size_t i) const { return recorder.value(input(i)); }
  [[nodiscard]] BufferPart y() const { return recorder.value(launch.output); }
  [[nodiscard]] BufferPart counts() const { return recorder.step().counts; }
  [[nodiscard]] u32 n() const { return recorder.features(launch.output); }
  [[nodiscard]] u32 rows() const { return recorder.rows(launch.output); }
  [[nodiscard]] u32 axis() const { return recorder.axis(launch.output); }

  /// A thread per four elements of all rows together.
  template <class Params>
  Result<void> elementwise(KernelId kernel, std::vector<BufferPart> buffers,
                           const Params& params) const {
    const std::int64_t elements = std::int64_t{rows()} * n();
    recorder.dispatch(kernel, std::move(buffers), params, {groups_for(ceil_div(elements, 4))},
                      row_threads);
    return {};
  }
  /// A thread per element of a row.
  template <class Params>
  Result<void> by_row(KernelId kernel, std::vector<BufferPart> buffers,
                      const Params& params) const {
    recorder.dispatch(kernel, std::move(buffers), params, {groups_for(n()), rows()}, row_threads);
    return {};
  }

  Result<void> operator()(const graph::Embed& op) const {
    const auto& [name, tensor, is_mapped] = recorder.host_weight(op.table);
    HEARTH_ASSIGN(const KernelId kernel,
                  kernel_for("embed_", tensor.dtype, format("tensor '{}'", name)));
    recorder.dispatch(kernel,
                      {counts(), recorder.step().tokens, recorder.context().chosen,
                       recorder.weight(op.table), y()},
                      EmbedParams{n(), op.scale, recorder.is_tiled(op.table) ? 1u : 0u}, {rows()},
                      EMBED_THREADS);
    return {};
  }
  Result<void> operator()(const graph::RmsNorm& op) const {
    record_norm(op, input(0), std::nullopt);
    return {};
  }
  Result<void> operator()(const graph::Add&) const {
    return elementwise(KernelId::add_f32, {counts(), x(0), x(1), y()}, AddParams{n(), axis()});
  }
  Result<void> operator()(const graph::Mul&) const {
    const u32 one_each = recorder.features(input(1)) == n() ? 0 : 1;
    return elementwise(KernelId::mul_f32, {counts(), x(0), x(1), y()},
                       MulParams{n(), axis(), one_each});
  }
  Result<void> operator()(const graph::Activation& op) const {
    return elementwise(KernelId::activation_f32, {counts(), x(0), y()},
                       ActivationParams{n(), axis(), static_cast<u32>(op.kind)});
  }
  Result<void> operator()(const graph::Softcap& op) const {
    return elementwise(KernelId::softcap_f32, {counts(), x(0), y()},
                       SoftcapParams{n(), axis(), op.cap});
  }
  Result<void> operator()(const graph::SelectRows&) const {
    return by_row(KernelId::gather_rows_f32, {counts(), x(0), recorder.step().logit_rows, y()},
                  RowMoveParams{n(), axis()});
  }
  Result<void> operator()(const graph::LoadRows&) const {
    return by_row(KernelId::gather_rows_f32,
                  {counts(), recorder.context().caches.rows(), recorder.step().row_sources, y()},
                  RowMoveParams{n(), axis()});
  }
  Result<void> operator()(const graph::StoreRows&) const {
    return by_row(
        KernelId::store_rows_f32,
        {counts(), x(0), recorder.step().row_targets, recorder.context().caches.rows(), y()},
        RowMoveParams{n(), axis()});
  }
  Result<void> operator()(const graph::Columns& op) const {
    return by_row(
        KernelId::columns_f32, {counts(), x(0), y()},
        ColumnsParams{n(), axis(), static_cast<u32>(op.pattern.period),
                      static_cast<u32>(op.pattern.start), static_cast<u32>(op.pattern.width)});
  }
  Result<void> operator()(const graph::Concat&) const {
    return by_row(KernelId::concat_f32, {counts(), x(0), x(1), y()},
                  ConcatParams{n(), axis(), recorder.features(input(0))});
  }
  Result<void> operator()(const graph::Rope& op) const;
  Result<void> operator()(const graph::Router& op) const;
  Result<void> operator()(const graph::Argmax& op) const;
  Result<void> operator()(const graph::TopK& op) const;
  Result<void> operator()(const graph::CausalConv& op) const;
  Result<void> operator()(const graph::DeltaRule& op) const;
  Result<void> operator()(const graph::Attention& op) const { return refuse(op); }
  Result<void> operator()(const graph::MatMul& op) const { return refuse(op); }
  Result<void> operator()(const graph::ExpertMatMul& op) const { return refuse(op); }
  Result<void> operator()(const graph::ExpertSum& op) const { return refuse(op); }

  void record_norm(const graph::RmsNorm& norm, graph::ValueId from,
                   std::optional<graph::ValueId> residual) const {
    const auto run = static_cast<u32>(recorder.host_weight(norm.weight).tensor.shape.back());
    recorder.dispatch(KernelId::rms_norm_f32,
                      {counts(), recorder.value(from), recorder.weight(norm.weight),
                       residual ? recorder.value(*residual) : recorder.absent(), y()},
                      RmsNormParams{run, axis(), residual ? 1u : 0u, norm.eps}, {n() / run, rows()},
                      row_threads);
  }
};

Result<void> RecordOp::operator()(const graph::Rope& op) const {
  const auto head_dim = static_cast<u32>(op.params.head_dim);
  recorder.dispatch(
      KernelId::rope_f32, {counts(), x(0), recorder.context().step.angles(op.params), y()},
      RopeParams{rope_pairs(op.params), head_dim}, {n() / head_dim, rows()}, row_threads);
  return {};
}

Result<void> RecordOp::operator()(const graph::Router& op) const {
  const RouterParams params{recorder.features(input(0)), static_cast<u32>(op.n_used)};
  if (params.n_experts > ROUTER_MAX_EXPERTS || params.n_used > ROUTER_MAX_USED) {
    return fail(ErrorCode::unsupported,
                "router: no GPU kernel for {} of {} experts, expected at most {} of {}",
                params.n_used, params.n_experts, ROUTER_MAX_USED, ROUTER_MAX_EXPERTS);
  }
  recorder.dispatch(KernelId::router_f32, {counts(), x(0), y()}, params, {rows()}, row_threads);
  return {};
}

Result<void> RecordOp::operator()(const graph::Argmax& op) const {
  const ArgmaxParams params{.n = recorder.features(input(0)),
                            .axis = axis(),
                            .n_columns = static_cast<u32>(op.n_columns),
                            .n_parts = static_cast<u32>(ceil_div(op.n_columns, ARGMAX_PART))};
  const BufferPart parts = recorder.scratch(std::int64_t{rows()} * params.n_parts * 8);
  recorder.dispatch(KernelId::argmax_part_f32, {counts(), x(0), parts}, params,
                    {params.n_parts, rows()}, row_threads);
  recorder.barrier();
  recorder.dispatch(KernelId::argmax_f32, {counts(), parts, y(), recorder.context().chosen}, params,
                    {rows()}, 32);
  return {};
}

Result<void> RecordOp::operator()(const graph::TopK& op) const {
  TopKParams params{.n = recorder.features(input(0)),
                    .axis = axis(),
                    .n_entries = static_cast<u32>(op.n_columns),
                    .k = static_cast<u32>(op.k),
                    .n_parts = 0,
                    .are_pairs = 0};
  if (params.k > TOP_K_PART / 2) {
    return fail(ErrorCode::unsupported,
                "top_k: no GPU kernel for the {} largest, expected up to {}", params.k,
                TOP_K_PART / 2);  // of more, parts might not become fewer
  }
  BufferPart from = x(0);
  do {
    params.n_parts = static_cast<u32>(ceil_div(params.n_entries, TOP_K_PART));
    const std::int64_t n_kept = std::int64_t{params.n_parts} * params.k;
    const BufferPart to =
        params.n_parts == 1
            ? y()
            : recorder.scratch(rows() * n_kept * std::int64_t{sizeof(graph::ColumnValue)});
    recorder.dispatch(KernelId::top_k_f32, {counts(), from, to}, params, {params.n_parts, rows()},
                      TOP_K_THREADS);
    recorder.barrier();
    from = to;
    params.n = params.n_entries = static_cast<u32>(n_kept);
    params.are_pairs = 1;
  } while (params.n_parts > 1);
  return {};
}

Result<void> RecordOp::operator()(const graph::CausalConv& op) const {
  const auto& caches = recorder.context().caches;
  const StepParts& step = recorder.step();
  const CausalConvParams params{
      n(), static_cast<u32>(recorder.host_weight(op.weight).tensor.shape.back()),
      caches.slot_stride()};
  const u32 n_sequences = sequence_capacity(rows(), recorder);
  const bool is_few = params.taps == 4 && rows() < min_prompt_rows;
  const auto n_groups =
      static_cast<u32>(ceil_div(params.channels, is_few ? row_threads : CAUSAL_CONV_CHANNELS));
  recorder.dispatch(is_few ? KernelId::causal_conv_few_f32 : KernelId::causal_conv_f32,
                    {counts(), x(0), recorder.weight(op.weight), step.row_starts, step.positions,
                     step.state_before, step.state_after, caches.ring(op.layer), y()},
                    params, {n_groups, n_sequences, is_few ? 1 : conv_shares(rows(), n_sequences)},
                    row_threads);
  return {};
}

Result<void> RecordOp::operator()(const graph::DeltaRule& op) const {
  const graph::DeltaRuleParams& delta = op.params;
  if (delta.key_dim > DELTA_RULE_MAX_KEY_DIM) {
    return fail(ErrorCode::unsupported,
                "recurrent layer {}: no GPU kernel for keys of {} values, expected at most {}",
                delta.layer, delta.key_dim, DELTA_RULE_MAX_KEY_DIM);
  }
  const DeltaRuleParams params = delta_params(delta, recorder);
  const bool is_128 = params.key_dim == 128;
  const u32 columns = is_128 && params.value_dim % DELTA_RULE_MAX_COLUMNS == 0
                          ? DELTA_RULE_MAX_COLUMNS
                          : DELTA_RULE_MAX_COLUMNS / 2;
  recorder.dispatch(
      is_128 ? KernelId::delta_rule_128_f32 : KernelId::delta_rule_f32,
      delta_buffers(op, launch, {}, recorder), params,
      {params.value_dim / columns, params.n_value_heads, sequence_capacity(rows(), recorder)},
      (is_128 ? 8 : 4) * columns);
  return {};
}

}  // namespace

bool applies_norm(const graph::DeltaRule& delta, const plan::OpLaunch& launch,
                  const graph::RmsNorm& norm, const plan::Gate& gate, const Recorder& recorder) {
  constexpr std::int64_t head_dim = 128;
  constexpr u32 max_rows = 16;  // more keep the device busy with less than a head in a threadgroup
  return delta.params.key_dim == head_dim && delta.params.value_dim == head_dim &&
         recorder.host_weight(norm.weight).tensor.shape.back() == head_dim && !gate.columns &&
         recorder.rows(launch.output) <= max_rows;
}

void record_normed_delta_rule(const graph::DeltaRule& delta, const plan::OpLaunch& launch,
                              const graph::RmsNorm& norm, const plan::Gate& gate,
                              Recorder& recorder) {
  const DeltaHeadParams params{.delta = delta_params(delta.params, recorder),
                               .eps = norm.eps,
                               .activation = static_cast<u32>(gate.kind)};
  recorder.dispatch(
      KernelId::delta_rule_head_f32,
      delta_buffers(delta, launch, {recorder.weight(norm.weight), recorder.value(gate.value)},
                    recorder),
      params,
      {params.delta.n_value_heads, sequence_capacity(recorder.rows(launch.output), recorder)},
      DELTA_HEAD_THREADS);
}

Result<void> record_norm_add(const plan::NormAdd& add, Recorder& recorder) {
  const plan::OpLaunch launch{add.norm, {add.input}, add.output};
  RecordOp{launch, recorder}.record_norm(add.norm, add.input, add.residual);
  return {};
}

Result<void> record_op(const plan::OpLaunch& launch, Recorder& recorder) {
  return std::visit(RecordOp{launch, recorder}, launch.op);
}

}  // namespace hearth::backend::gpu
