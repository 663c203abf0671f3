#include "model/arch/qwen_blocks.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/fail.h"

namespace hearth::model {
namespace {

// Bounds on what a file may ask for: generous against real models, small against memory.
constexpr std::int64_t max_heads = 4096;
constexpr std::int64_t max_head_dim = 4096;
constexpr std::int64_t max_taps = 64;
constexpr std::int64_t max_experts = 1 << 16;
constexpr std::int64_t max_ffn = 1 << 20;

Result<void> expect_negative(const WeightBinder& weights, WeightId rate, std::string_view name) {
  const auto& tensor = weights.tensor(rate);
  const std::span values(as_array<float>(tensor.data.data()),
                         static_cast<std::size_t>(tensor.shape.elements()));
  const auto bad = std::find_if(values.begin(), values.end(), [](float x) { return !(x < 0); });
  if (bad != values.end()) {
    return fail(ErrorCode::invalid_file,
                "{}: tensor '{}' has {} at {}, expected decay rates below zero",
                weights.file().shard_name(0), name, *bad, bad - values.begin());
  }
  return {};
}

/// x [rows, embed] -> [rows, n_kv_heads * head_dim], normed and rotated.
ValueId keys_of(GraphBuilder& g, const QwenAttention& w, const HyperParams& params,
                const graph::RopeParams& rotation, ValueId x) {
  const ValueId k_in = matmul(g, x, w.projections.k, w.projections.k_bias);
  return rope(g, rms_norm(g, k_in, w.k_norm, params.norm_eps), rotation);
}

}  // namespace

Result<QwenAttention> bind_qwen_attention(WeightBinder& weights, const HyperParams& params,
                                          AttentionGate gate, std::int64_t layer) {
  QwenAttention w{.projections = {}, .gate = gate};
  const std::int64_t per_head = gate == AttentionGate::none ? 1 : 2;
  HEARTH_ASSIGN(w.projections, bind_attention(weights, params, layer, per_head));
  HEARTH_ASSIGN(w.q_norm, weights.vector(block_name(layer, "attn_q_norm.weight"), params.head_dim));
  HEARTH_ASSIGN(w.k_norm, weights.vector(block_name(layer, "attn_k_norm.weight"), params.head_dim));
  return w;
}

ValueId qwen_attention(GraphBuilder& g, const QwenAttention& w, const HyperParams& params,
                       const graph::RopeParams& rotation, std::int64_t kv_layer, ValueId x) {
  const std::int64_t head_dim = params.head_dim;
  const graph::ColumnPattern query{2 * head_dim, 0, head_dim};
  const graph::ColumnPattern gate{2 * head_dim, head_dim, head_dim};
  const bool is_gated = w.gate == AttentionGate::sigmoid;
  const ValueId projected = matmul(g, x, w.projections.q, w.projections.q_bias);
  const ValueId q_in = is_gated ? columns(g, projected, query) : projected;
  const ValueId q = rope(g, rms_norm(g, q_in, w.q_norm, params.norm_eps), rotation);
  const ValueId k = keys_of(g, w, params, rotation, x);
  const ValueId v = matmul(g, x, w.projections.v, w.projections.v_bias);
  ValueId mixed = attention(g,
                            {.layer = kv_layer,
                             .n_heads = params.n_heads,
                             .n_kv_heads = params.n_kv_heads,
                             .head_dim = head_dim,
                             .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))},
                            q, k, v);  // [rows, n_heads * head_dim]
  if (is_gated) {
    mixed =
        mul(g, mixed, activation(g, graph::ActivationKind::sigmoid, columns(g, projected, gate)));
  }
  return matmul(g, mixed, w.projections.output, w.projections.output_bias);
}

ValueId qwen_keys_and_values(GraphBuilder& g, const QwenAttention& w, const HyperParams& params,
                             const graph::RopeParams& rotation, std::int64_t kv_layer, ValueId x) {
  // Attention is what stores them. Nobody asks for what it finds, so keys ask, one head each: they
  // take the least work. They are a value of their own, as queries are everywhere.
  const ValueId q = keys_of(g, w, params, rotation, x);
  const ValueId k = keys_of(g, w, params, rotation, x);
  const ValueId v = matmul(g, x, w.projections.v, w.projections.v_bias);
  return attention(g,
                   {.layer = kv_layer,
                    .n_heads = params.n_kv_heads,
                    .n_kv_heads = params.n_kv_heads,
                    .head_dim = params.head_dim,
                    .scale = 1.0f},
                   q, k, v);
}

graph::StateLayer DeltaNetParams::state() const {
  return {.n_heads = heads.n_value_heads,
          .key_dim = heads.key_dim,
          .value_dim = heads.value_dim,
          .conv_channels = channels(),
          .conv_taps = conv_taps};
}

Result<DeltaNetParams> read_delta_net(const ArchKeys& keys, graph::HeadOrder order) {
  DeltaNetParams net;
  // A key of few files, which says what their architecture usually implies.
  HEARTH_ASSIGN(const auto is_tiled,
                keys.get_or<bool>("ssm.v_head_reordered", order == graph::HeadOrder::tiled));
  net.heads.order = is_tiled ? graph::HeadOrder::tiled : graph::HeadOrder::grouped;
  HEARTH_ASSIGN(net.conv_taps, keys.count("ssm.conv_kernel", 2, max_taps));
  HEARTH_ASSIGN(net.heads.key_dim, keys.count("ssm.state_size", 1, max_head_dim));
  HEARTH_ASSIGN(net.heads.n_key_heads, keys.count("ssm.group_count", 1, max_heads));
  HEARTH_ASSIGN(net.heads.n_value_heads, keys.count("ssm.time_step_rank", 1, max_heads));
  HEARTH_ASSIGN(const auto inner, keys.count("ssm.inner_size", 1, max_heads * max_head_dim));
  if (net.heads.n_value_heads % net.heads.n_key_heads != 0 ||
      inner % net.heads.n_value_heads != 0) {
    return fail(ErrorCode::invalid_file,
                "{}: {} is {}, expected a multiple of the {} key heads and a divisor of {} {}",
                keys.metadata().file(), keys.key("ssm.time_step_rank"), net.heads.n_value_heads,
                net.heads.n_key_heads, keys.key("ssm.inner_size"), inner);
  }
  net.heads.value_dim = inner / net.heads.n_value_heads;
  return net;
}

Result<DeltaNet> bind_delta_net(WeightBinder& weights, const HyperParams& params,
                                const DeltaNetParams& net, std::int64_t layer) {
  const auto name = [&](std::string_view suffix) { return block_name(layer, suffix); };
  const std::int64_t n_heads = net.heads.n_value_heads;
  DeltaNet w;
  HEARTH_ASSIGN(w.conv,
                weights.numbers(name("ssm_conv1d.weight"), Shape{net.channels(), net.conv_taps}));
  HEARTH_ASSIGN(w.rate, weights.vector(name("ssm_a"), n_heads));
  HEARTH_TRY(expect_negative(weights, w.rate, name("ssm_a")));
  // A few converters leave the suffix away.
  const auto bias = weights.has(name("ssm_dt")) ? name("ssm_dt") : name("ssm_dt.bias");
  HEARTH_ASSIGN(w.bias, weights.vector(bias, n_heads));
  HEARTH_ASSIGN(w.norm, weights.vector(name("ssm_norm.weight"), net.heads.value_dim));
  HEARTH_ASSIGN(w.output,
                weights.matrix(name("ssm_out.weight"), params.embed, net.heads.value_features()));
  return w;
}

ValueId delta_net(GraphBuilder& g, const DeltaNet& w, const DeltaNetParams& net, float norm_eps,
                  std::int64_t state_layer, ValueId x) {
  graph::DeltaRuleParams heads = net.heads;
  heads.layer = state_layer;
  const ValueId qkv = causal_conv(g, state_layer, matmul(g, x, w.in.qkv), w.conv);
  const ValueId gate = activation(g, graph::ActivationKind::silu, matmul(g, x, w.in.gate));
  const ValueId read = delta_rule(g, heads,
                                  {.qkv = qkv,
                                   .write_gate = matmul(g, x, w.in.write_gate),
                                   .decay_gate = matmul(g, x, w.in.decay_gate)},
                                  w.rate, w.bias);  // [rows, n_value_heads * value_dim]
  return matmul(g, mul(g, rms_norm(g, read, w.norm, norm_eps), gate), w.output);
}

Result<ExpertParams> read_experts(const ArchKeys& keys, SharedExpert shared) {
  ExpertParams experts;
  HEARTH_ASSIGN(experts.n_experts, keys.count("expert_count", 1, max_experts));
  HEARTH_ASSIGN(experts.n_used, keys.count("expert_used_count", 1, experts.n_experts));
  HEARTH_ASSIGN(experts.ffn, keys.count("expert_feed_forward_length", 1, max_ffn));
  if (shared == SharedExpert::gated) {
    HEARTH_ASSIGN(experts.shared_ffn,
                  keys.count_or("expert_shared_feed_forward_length", experts.ffn, 1, max_ffn));
  }
  return experts;
}

Result<ExpertFfn> bind_experts(WeightBinder& weights, const HyperParams& params,
                               const ExpertParams& experts, std::int64_t layer) {
  const auto name = [&](std::string_view suffix) { return block_name(layer, suffix); };
  const std::int64_t n = experts.n_experts;
  const std::int64_t ffn = experts.ffn;
  ExpertFfn w;
  HEARTH_ASSIGN(w.router, weights.matrix(name("ffn_gate_inp.weight"), n, params.embed));
  HEARTH_ASSIGN(const auto both, weights.find_experts(name("ffn_gate_up_exps.weight"),
                                                      Shape{n, 2 * ffn, params.embed}));
  if (both) {
    w.gate = {*both, 0, ffn};
    w.up = {*both, ffn, ffn};
  } else {
    const Shape shape{n, ffn, params.embed};
    HEARTH_ASSIGN(const auto gate, weights.experts(name("ffn_gate_exps.weight"), shape));
    HEARTH_ASSIGN(const auto up, weights.experts(name("ffn_up_exps.weight"), shape));
    w.gate = {gate, 0, ffn};
    w.up = {up, 0, ffn};
  }
  HEARTH_ASSIGN(const auto down,
                weights.experts(name("ffn_down_exps.weight"), Shape{n, params.embed, ffn}));
  w.down = {down, 0, params.embed};
  if (experts.shared_ffn > 0) {
    ExpertFfn::Shared shared;
    HEARTH_ASSIGN(shared.gate, weights.row(name("ffn_gate_inp_shexp.weight"), params.embed));
    HEARTH_ASSIGN(shared.ffn.gate,
                  weights.matrix(name("ffn_gate_shexp.weight"), experts.shared_ffn, params.embed));
    HEARTH_ASSIGN(shared.ffn.up,
                  weights.matrix(name("ffn_up_shexp.weight"), experts.shared_ffn, params.embed));
    HEARTH_ASSIGN(shared.ffn.down,
                  weights.matrix(name("ffn_down_shexp.weight"), params.embed, experts.shared_ffn));
    w.shared = shared;
  }
  return w;
}

ValueId expert_ffn(GraphBuilder& g, const ExpertFfn& w, std::int64_t n_used, ValueId residual,
                   ValueId x) {
  using graph::ActivationKind;
  const ValueId routing = router(g, matmul(g, x, w.router), n_used);  // [rows, 2 n_used]
  const ValueId gate = activation(g, ActivationKind::silu, expert_matmul(g, w.gate, x, routing));
  const ValueId hidden = mul(g, gate, expert_matmul(g, w.up, x, routing));  // [rows, n_used * ffn]
  const ValueId sum =
      add(g, residual, expert_sum(g, expert_matmul(g, w.down, hidden, routing), routing));
  if (!w.shared) {
    return sum;
  }
  const ValueId share =
      activation(g, ActivationKind::sigmoid, matmul(g, x, w.shared->gate));  // [rows, 1]
  const ValueId shared = gated_ffn(g, w.shared->ffn, ActivationKind::silu, x);
  return add(g, sum, mul(g, shared, share));
}

}  // namespace hearth::model
