#include "engine/selftest/probes.h"

#include <array>
#include <cmath>

#include "base/format.h"
#include "model/synth/random_blocks.h"
#include "quant/registry.h"
#include "quant/types/q4_0.h"
#include "quant/types/q4_k.h"
#include "quant/types/q5_k.h"
#include "quant/types/q6_k.h"
#include "quant/types/q8_0.h"

namespace hearth::engine {
namespace {

using graph::ActivationKind;
using graph::GraphBuilder;
using graph::ValueId;

constexpr float eps = 1e-6f;
constexpr DType usual = quant::Q4_K::info.dtype;  // of weights that a probe is not about
constexpr std::int64_t conv_taps = 4;

/// Every `share`-th of the repeats: layers of many weights take fewer.
void repeat(Probe& probe, std::int64_t share, const std::function<Probe::Layer()>& make_layer) {
  probe.set_embedding(DType::f32);
  for (std::int64_t i = 0; i < probe.size().n_repeats; i += share) {
    probe.add_layer(make_layer());
  }
}

/// x + W norm(x)
void build_product(Probe& probe, DType dtype) {
  const std::int64_t width = probe.size().width;
  repeat(probe, 1, [&] {
    const auto norm = probe.norm(width);
    const auto weight = probe.matrix(dtype, width, width);
    return [=](GraphBuilder& g, ValueId x) {
      return add(g, x, matmul(g, rms_norm(g, x, norm, eps), weight));
    };
  });
}

/// x + down(silu(gate) up), as all families have it.
void build_feed_forward(Probe& probe, DType dtype) {
  const auto [width, hidden] = std::pair(probe.size().width, probe.size().hidden);
  repeat(probe, 1, [&] {
    const auto norm = probe.norm(width);
    const auto gate = probe.matrix(dtype, hidden, width);
    const auto up = probe.matrix(dtype, hidden, width);
    const auto down = probe.matrix(dtype, width, hidden);
    return [=](GraphBuilder& g, ValueId x) {
      const ValueId in = rms_norm(g, x, norm, eps);
      const ValueId gated = activation(g, ActivationKind::silu, matmul(g, in, gate));
      return add(g, x, matmul(g, mul(g, gated, matmul(g, in, up)), down));
    };
  });
}

/// Routed experts and a shared one.
void build_experts(Probe& probe, DType dtype) {
  const ProbeSize& size = probe.size();
  repeat(probe, 8, [&] {
    const auto norm = probe.norm(size.width);
    const auto router = probe.matrix(DType::f32, size.n_experts, size.width);
    const graph::ExpertMatMul gate{probe.experts(dtype, size.hidden, size.width), 0, size.hidden};
    const graph::ExpertMatMul up{probe.experts(dtype, size.hidden, size.width), 0, size.hidden};
    const graph::ExpertMatMul down{probe.experts(dtype, size.width, size.hidden), 0, size.width};
    const auto share = probe.matrix(DType::f32, 1, size.width);
    const auto shared_gate = probe.matrix(dtype, size.hidden, size.width);
    const auto shared_up = probe.matrix(dtype, size.hidden, size.width);
    const auto shared_down = probe.matrix(dtype, size.width, size.hidden);
    return [=, n_used = size.n_used](GraphBuilder& g, ValueId x) {
      const ValueId in = rms_norm(g, x, norm, eps);
      const ValueId routing = graph::router(g, matmul(g, in, router), n_used);
      const ValueId gated =
          activation(g, ActivationKind::silu, expert_matmul(g, gate, in, routing));
      const ValueId both = mul(g, gated, expert_matmul(g, up, in, routing));
      const ValueId sum = add(g, x, expert_sum(g, expert_matmul(g, down, both, routing), routing));
      const ValueId part = activation(g, ActivationKind::sigmoid, matmul(g, in, share));
      const ValueId hidden = mul(g, activation(g, ActivationKind::silu, matmul(g, in, shared_gate)),
                                 matmul(g, in, shared_up));
      return add(g, sum, mul(g, matmul(g, hidden, shared_down), part));
    };
  });
}

/// Gated attention with normed and rotated heads.
void build_attention(Probe& probe, DType cache) {
  const ProbeSize& size = probe.size();
  const std::int64_t dim = size.head_dim;
  repeat(probe, 1, [&] {
    const std::int64_t layer = probe.add_kv_layer(cache, {size.n_kv_heads, dim});
    const graph::AttentionParams params{.layer = layer,
                                        .n_heads = size.n_heads,
                                        .n_kv_heads = size.n_kv_heads,
                                        .head_dim = dim,
                                        .scale = 1 / std::sqrt(static_cast<float>(dim))};
    const graph::RopeParams rope{
        .pairing = graph::RopePairing::half_split, .head_dim = dim, .n_rot = dim / 4};
    const auto norm = probe.norm(size.width);
    const auto both = probe.matrix(usual, 2 * size.n_heads * dim, size.width);
    const auto k = probe.matrix(usual, size.n_kv_heads * dim, size.width);
    const auto v = probe.matrix(usual, size.n_kv_heads * dim, size.width);
    const auto q_norm = probe.norm(dim);
    const auto k_norm = probe.norm(dim);
    const auto out = probe.matrix(usual, size.width, size.n_heads * dim);
    return [=](GraphBuilder& g, ValueId x) {
      const ValueId in = rms_norm(g, x, norm, eps);
      const ValueId queries = matmul(g, in, both);
      const ValueId q =
          graph::rope(g, rms_norm(g, columns(g, queries, {2 * dim, 0, dim}), q_norm, eps), rope);
      const ValueId keys = graph::rope(g, rms_norm(g, matmul(g, in, k), k_norm, eps), rope);
      const ValueId mixed = attention(g, params, q, keys, matmul(g, in, v));
      const ValueId gate =
          activation(g, ActivationKind::sigmoid, columns(g, queries, {2 * dim, dim, dim}));
      return add(g, x, matmul(g, mul(g, mixed, gate), out));
    };
  });
}

/// A gated delta rule behind a causal convolution.
void build_recurrent(Probe& probe) {
  const ProbeSize& size = probe.size();
  const std::int64_t n_heads = size.n_state_heads;
  const std::int64_t dim = size.state_dim;
  const std::int64_t channels = 2 * n_heads * dim;  // q and k of half as many heads, v
  repeat(probe, 1, [&] {
    const std::int64_t layer = probe.add_state_layer({.n_heads = n_heads,
                                                      .key_dim = dim,
                                                      .value_dim = dim,
                                                      .conv_channels = channels,
                                                      .conv_taps = conv_taps});
    const graph::DeltaRuleParams params{.layer = layer,
                                        .n_key_heads = n_heads / 2,
                                        .n_value_heads = n_heads,
                                        .key_dim = dim,
                                        .value_dim = dim,
                                        .order = graph::HeadOrder::tiled};
    const auto norm = probe.norm(size.width);
    const auto qkv = probe.matrix(usual, channels, size.width);
    const auto z = probe.matrix(usual, n_heads * dim, size.width);
    const auto write = probe.matrix(DType::f32, n_heads, size.width);
    const auto decay = probe.matrix(DType::f32, n_heads, size.width);
    const auto conv = probe.uniform({channels, conv_taps}, -1, 1);
    const auto rate = probe.uniform({n_heads}, -1, -0.05f);
    const auto bias = probe.uniform({n_heads}, -1, 1);
    const auto head_norm = probe.norm(dim);
    const auto out = probe.matrix(usual, size.width, n_heads * dim);
    return [=](GraphBuilder& g, ValueId x) {
      const ValueId in = rms_norm(g, x, norm, eps);
      const ValueId gate = activation(g, ActivationKind::silu, matmul(g, in, z));
      const ValueId read = delta_rule(g, params,
                                      {.qkv = causal_conv(g, layer, matmul(g, in, qkv), conv),
                                       .write_gate = matmul(g, in, write),
                                       .decay_gate = matmul(g, in, decay)},
                                      rate, bias);
      return add(g, x, matmul(g, mul(g, rms_norm(g, read, head_norm, eps), gate), out));
    };
  });
}

/// What gemma has behind its layers.
void build_post_norm(Probe& probe) {
  const std::int64_t width = probe.size().width;
  repeat(probe, 1, [&] {
    const auto norm = probe.norm(width);
    const auto post_norm = probe.norm(width);
    const auto gate = probe.matrix(usual, width, width);
    const auto up = probe.matrix(usual, width, width);
    return [=](GraphBuilder& g, ValueId x) {
      const ValueId in = rms_norm(g, x, norm, eps);
      const ValueId gated = activation(g, ActivationKind::gelu_tanh, matmul(g, in, gate));
      const ValueId both = mul(g, gated, matmul(g, in, up));
      return softcap(g, 30, add(g, rms_norm(g, both, post_norm, eps), x));
    };
  });
}

std::vector<DType> weight_types() {
  std::vector<DType> types;
  for (const auto& info : quant::all()) {
    if (model::RandomBlocks::can_make(info.dtype)) {
      types.push_back(info.dtype);
    }
  }
  return types;
}

}  // namespace

std::vector<ProbeKind> all_probes() {
  std::vector<ProbeKind> probes;
  const auto add_for_each = [&probes](std::string_view what, const auto& types, auto build) {
    for (const DType type : types) {
      probes.push_back({format("{} {}", what, quant::name(type)),
                        [build, type](Probe& probe) { build(probe, type); }});
    }
  };
  const std::array k_types{quant::Q4_K::info.dtype, quant::Q5_K::info.dtype,
                           quant::Q6_K::info.dtype, quant::Q8_0::info.dtype};
  const std::array cache_types{DType::f32, DType::f16, DType::bf16, quant::Q8_0::info.dtype,
                               quant::Q4_0::info.dtype};
  add_for_each("product", weight_types(), build_product);
  add_for_each("feed forward", k_types, build_feed_forward);
  add_for_each("experts", k_types, build_experts);
  add_for_each("attention", cache_types, build_attention);
  probes.push_back({"recurrent layer", build_recurrent});
  probes.push_back({"post norm", build_post_norm});
  add_for_each("embedding", weight_types(),
               [](Probe& probe, DType type) { probe.set_embedding(type); });
  return probes;
}

}  // namespace hearth::engine
