#include "tests/graph/tiny_model.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/half.h"
#include "quant/registry.h"
#include "tests/graph/random_floats.h"
#include "tests/quant/random_blocks.h"

namespace hearth::graph {
namespace {

template <class Stored, class Convert>
std::vector<std::byte> stored_floats(std::int64_t n, std::mt19937& random, Convert convert) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(n) * sizeof(Stored));
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(Stored)) {
    store<Stored>(bytes.data(), convert(uniform_float(random, -1.0f, 1.0f)), i);
  }
  return bytes;
}

std::vector<std::byte> random_bytes(DType dtype, const Shape& shape, std::mt19937& random) {
  const std::int64_t n = shape.elements();
  switch (dtype) {
    case DType::f32:
      return stored_floats<float>(n, random, [](float x) { return x; });
    case DType::f64:
      return stored_floats<double>(n, random, [](float x) { return static_cast<double>(x); });
    case DType::f16:
      return stored_floats<Half>(n, random, [](float x) { return to_half(x); });
    case DType::bf16:
      return stored_floats<BFloat16>(n, random, [](float x) { return to_bfloat16(x); });
    default: {
      const auto& type = quant::info(dtype);
      auto bytes = quant::random_blocks(type, static_cast<std::uint32_t>(random()),
                                        static_cast<std::size_t>(n / type.block_weights));
      if (type.name == "MXFP4") {  // its scale is all exponent: keep products of layers finite
        for (std::size_t i = 0; i < bytes.size(); i += static_cast<std::size_t>(type.block_bytes)) {
          bytes[i] = std::byte{124} | (bytes[i] & std::byte{3});
        }
      }
      return bytes;
    }
  }
}

}  // namespace

WeightId RandomWeights::add(std::string name, DType dtype, Shape shape) {
  return add_bytes(std::move(name), dtype, shape, random_bytes(dtype, shape, random_));
}

WeightId RandomWeights::add_uniform(std::string name, Shape shape, float low, float high) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (auto& value : values) {
    value = uniform_float(random_, low, high);
  }
  return add_values(std::move(name), shape, values);
}

WeightId RandomWeights::add_values(std::string name, Shape shape,
                                   const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return add_bytes(std::move(name), DType::f32, shape, std::move(bytes));
}

WeightId RandomWeights::add_bytes(std::string name, DType dtype, Shape shape,
                                  std::vector<std::byte> bytes) {
  data_.push_back(std::move(bytes));
  table_.push_back({std::move(name), {dtype, shape, data_.back()}});
  return static_cast<WeightId>(table_.size() - 1);
}

TinyModel::TinyModel(Family family, const TinySize& size, const std::vector<DType>& dtypes)
    : family_(family), size_(size), dtypes_(dtypes), weights_(17) {
  token_embed_ = matrix("token_embd.weight", size.vocab, size.embed);
  for (std::int64_t i = 0; i < size.n_layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    if (family == Family::hybrid) {
      add_hybrid_layer(prefix, i % 2 == 0);
      continue;
    }
    Layer layer{};
    layer.attn_norm = norm(prefix + "attn_norm.weight", size.embed);
    layer.q = matrix(prefix + "attn_q.weight", size.n_heads * size.head_dim, size.embed);
    layer.k = matrix(prefix + "attn_k.weight", size.n_kv_heads * size.head_dim, size.embed);
    layer.v = matrix(prefix + "attn_v.weight", size.n_kv_heads * size.head_dim, size.embed);
    layer.o = matrix(prefix + "attn_output.weight", size.embed, size.n_heads * size.head_dim);
    layer.ffn_norm = norm(prefix + "ffn_norm.weight", size.embed);
    layer.gate = matrix(prefix + "ffn_gate.weight", size.ffn, size.embed);
    layer.up = matrix(prefix + "ffn_up.weight", size.ffn, size.embed);
    layer.down = matrix(prefix + "ffn_down.weight", size.embed, size.ffn);
    if (family == Family::gemma) {
      layer.q_norm = norm(prefix + "attn_q_norm.weight", size.head_dim);
      layer.k_norm = norm(prefix + "attn_k_norm.weight", size.head_dim);
      layer.attn_post_norm = norm(prefix + "post_attention_norm.weight", size.embed);
      layer.ffn_post_norm = norm(prefix + "post_ffw_norm.weight", size.embed);
    }
    layers_.push_back(layer);
  }
  output_norm_ = norm("output_norm.weight", size.embed);
  output_ = matrix("output.weight", size.vocab, size.embed);
}

WeightId TinyModel::matrix(const std::string& name, std::int64_t out, std::int64_t in) {
  return weights_.add(name, dtypes_[next_dtype_++ % dtypes_.size()], Shape{out, in});
}

WeightId TinyModel::experts(const std::string& name, std::int64_t out, std::int64_t in) {
  return weights_.add(name, dtypes_[next_dtype_++ % dtypes_.size()],
                      Shape{size_.n_experts, out, in});
}

/// Recurrent layers have gate and up in one tensor.
void TinyModel::add_hybrid_layer(const std::string& prefix, bool is_recurrent) {
  const std::int64_t embed = size_.embed;
  const std::int64_t ffn = size_.ffn;
  const std::int64_t values = size_.n_value_heads * size_.value_dim;
  const std::int64_t channels = 2 * size_.n_key_heads * size_.key_dim + values;
  Layer layer{};
  layer.attn_norm = norm(prefix + "attn_norm.weight", embed);
  layer.ffn_norm = norm(prefix + "post_attention_norm.weight", embed);
  layer.router = matrix(prefix + "ffn_gate_inp.weight", size_.n_experts, embed);
  if (is_recurrent) {
    layer.qkv = matrix(prefix + "attn_qkv.weight", channels, embed);
    layer.z = matrix(prefix + "attn_gate.weight", values, embed);
    layer.write_gate = matrix(prefix + "ssm_beta.weight", size_.n_value_heads, embed);
    layer.decay_gate = matrix(prefix + "ssm_alpha.weight", size_.n_value_heads, embed);
    layer.conv = weights_.add_uniform(prefix + "ssm_conv1d.weight", Shape{channels, 4}, -1, 1);
    layer.rate = weights_.add_uniform(prefix + "ssm_a", Shape{size_.n_value_heads}, -1, -0.05f);
    layer.bias = weights_.add_uniform(prefix + "ssm_dt.bias", Shape{size_.n_value_heads}, -1, 1);
    layer.head_norm = norm(prefix + "ssm_norm.weight", size_.value_dim);
    layer.ssm_out = matrix(prefix + "ssm_out.weight", embed, values);
    const auto both = experts(prefix + "ffn_gate_up_exps.weight", 2 * ffn, embed);
    layer.expert_gate = {both, 0, ffn};
    layer.expert_up = {both, ffn, ffn};
    layer.share = matrix(prefix + "ffn_gate_inp_shexp.weight", 1, embed);
    layer.gate = matrix(prefix + "ffn_gate_shexp.weight", ffn, embed);
    layer.up = matrix(prefix + "ffn_up_shexp.weight", ffn, embed);
    layer.down = matrix(prefix + "ffn_down_shexp.weight", embed, ffn);
  } else {
    const std::int64_t heads = size_.n_heads * size_.head_dim;
    layer.q = matrix(prefix + "attn_q.weight", 2 * heads, embed);
    layer.k = matrix(prefix + "attn_k.weight", size_.n_kv_heads * size_.head_dim, embed);
    layer.v = matrix(prefix + "attn_v.weight", size_.n_kv_heads * size_.head_dim, embed);
    layer.o = matrix(prefix + "attn_output.weight", embed, heads);
    layer.q_norm = norm(prefix + "attn_q_norm.weight", size_.head_dim);
    layer.k_norm = norm(prefix + "attn_k_norm.weight", size_.head_dim);
    layer.expert_gate = {experts(prefix + "ffn_gate_exps.weight", ffn, embed), 0, ffn};
    layer.expert_up = {experts(prefix + "ffn_up_exps.weight", ffn, embed), 0, ffn};
  }
  layer.expert_down = {experts(prefix + "ffn_down_exps.weight", embed, ffn), 0, embed};
  layers_.push_back(layer);
}

WeightId TinyModel::norm(const std::string& name, std::int64_t n) {
  // Small, so that scores stay in the range where a softmax is sensitive.
  return weights_.add_uniform(name, Shape{n}, 0.01f, 0.03f);
}

KvCacheDesc TinyModel::kv_cache(DType dtype, std::int64_t n_blocks) const {
  const std::int64_t n_layers = family_ == Family::hybrid ? size_.n_layers / 2 : size_.n_layers;
  return {dtype, n_blocks,
          std::vector<KvLayer>(static_cast<std::size_t>(n_layers),
                               KvLayer{size_.n_kv_heads, size_.head_dim})};
}

StateCacheDesc TinyModel::states(std::int64_t n_slots) const {
  const std::int64_t values = size_.n_value_heads * size_.value_dim;
  const std::int64_t n_layers = family_ == Family::hybrid ? (size_.n_layers + 1) / 2 : 0;
  return {n_slots, std::vector<StateLayer>(
                       static_cast<std::size_t>(n_layers),
                       StateLayer{.n_heads = size_.n_value_heads,
                                  .key_dim = size_.key_dim,
                                  .value_dim = size_.value_dim,
                                  .conv_channels = 2 * size_.n_key_heads * size_.key_dim + values,
                                  .conv_taps = 4})};
}

AttentionParams TinyModel::attention_params(std::int64_t layer) const {
  return {.layer = layer,
          .n_heads = size_.n_heads,
          .n_kv_heads = size_.n_kv_heads,
          .head_dim = size_.head_dim,
          .scale = 1.0f / std::sqrt(static_cast<float>(size_.head_dim)),
          .window = family_ == Family::gemma && layer % 2 == 0 ? size_.window : 0};
}

ValueId TinyModel::llama_layer(GraphBuilder& g, const Layer& w, std::int64_t layer,
                               ValueId x) const {
  const RopeParams rotation{
      .pairing = RopePairing::adjacent, .head_dim = size_.head_dim, .n_rot = size_.head_dim};
  const ValueId attn_in = rms_norm(g, x, w.attn_norm, 1e-5f);
  const ValueId q = rope(g, matmul(g, attn_in, w.q), rotation);
  const ValueId k = rope(g, matmul(g, attn_in, w.k), rotation);
  const ValueId v = matmul(g, attn_in, w.v);
  const ValueId mixed = attention(g, attention_params(layer), q, k, v);
  const ValueId h = add(g, x, matmul(g, mixed, w.o));
  const ValueId ffn_in = rms_norm(g, h, w.ffn_norm, 1e-5f);
  const ValueId gate = activation(g, ActivationKind::silu, matmul(g, ffn_in, w.gate));
  const ValueId up = matmul(g, ffn_in, w.up);
  return add(g, h, matmul(g, mul(g, gate, up), w.down));
}

ValueId TinyModel::gemma_layer(GraphBuilder& g, const Layer& w, std::int64_t layer,
                               ValueId x) const {
  const RopeParams rotation{.pairing = RopePairing::half_split,
                            .head_dim = size_.head_dim,
                            .n_rot = size_.head_dim / 2,
                            .base = 1000.0f};
  const ValueId attn_in = rms_norm(g, x, w.attn_norm, 1e-6f);
  const ValueId q = rope(g, rms_norm(g, matmul(g, attn_in, w.q), w.q_norm, 1e-6f), rotation);
  const ValueId k = rope(g, rms_norm(g, matmul(g, attn_in, w.k), w.k_norm, 1e-6f), rotation);
  const ValueId v = matmul(g, attn_in, w.v);
  const ValueId mixed = attention(g, attention_params(layer), q, k, v);
  const ValueId attn_out = rms_norm(g, matmul(g, mixed, w.o), w.attn_post_norm, 1e-6f);
  const ValueId h = add(g, attn_out, x);
  const ValueId ffn_in = rms_norm(g, h, w.ffn_norm, 1e-6f);
  const ValueId gate = activation(g, ActivationKind::gelu_tanh, matmul(g, ffn_in, w.gate));
  const ValueId up = matmul(g, ffn_in, w.up);
  const ValueId ffn_out = rms_norm(g, matmul(g, mul(g, gate, up), w.down), w.ffn_post_norm, 1e-6f);
  return add(g, ffn_out, h);
}

ValueId TinyModel::delta_net(GraphBuilder& g, const Layer& w, std::int64_t state_layer,
                             ValueId x) const {
  const ValueId z = activation(g, ActivationKind::silu, matmul(g, x, w.z));
  const ValueId read = delta_rule(g,
                                  {.layer = state_layer,
                                   .n_key_heads = size_.n_key_heads,
                                   .n_value_heads = size_.n_value_heads,
                                   .key_dim = size_.key_dim,
                                   .value_dim = size_.value_dim,
                                   .order = size_.order},
                                  {.qkv = causal_conv(g, state_layer, matmul(g, x, w.qkv), w.conv),
                                   .write_gate = matmul(g, x, w.write_gate),
                                   .decay_gate = matmul(g, x, w.decay_gate)},
                                  w.rate, w.bias);
  return matmul(g, mul(g, rms_norm(g, read, w.head_norm, 1e-6f), z), w.ssm_out);
}

ValueId TinyModel::gated_attention(GraphBuilder& g, const Layer& w, std::int64_t kv_layer,
                                   ValueId x) const {
  const std::int64_t dim = size_.head_dim;
  const RopeParams rotation{
      .pairing = RopePairing::half_split, .head_dim = dim, .n_rot = dim / 4, .base = 1000.0f};
  const ValueId both = matmul(g, x, w.q);
  const ValueId q =
      rope(g, rms_norm(g, columns(g, both, {2 * dim, 0, dim}), w.q_norm, 1e-6f), rotation);
  const ValueId k = rope(g, rms_norm(g, matmul(g, x, w.k), w.k_norm, 1e-6f), rotation);
  const ValueId mixed = attention(g, attention_params(kv_layer), q, k, matmul(g, x, w.v));
  const ValueId gate =
      activation(g, ActivationKind::sigmoid, columns(g, both, {2 * dim, dim, dim}));
  return matmul(g, mul(g, mixed, gate), w.o);
}

ValueId TinyModel::hybrid_layer(GraphBuilder& g, const Layer& w, std::int64_t layer,
                                ValueId x) const {
  const bool is_recurrent = layer % 2 == 0;
  const ValueId mixer_in = rms_norm(g, x, w.attn_norm, 1e-6f);
  const ValueId mixed = is_recurrent ? delta_net(g, w, layer / 2, mixer_in)
                                     : gated_attention(g, w, layer / 2, mixer_in);
  const ValueId h = add(g, x, mixed);
  const ValueId ffn_in = rms_norm(g, h, w.ffn_norm, 1e-6f);
  const ValueId routing = router(g, matmul(g, ffn_in, w.router), size_.n_used);
  const ValueId gate =
      activation(g, ActivationKind::silu, expert_matmul(g, w.expert_gate, ffn_in, routing));
  const ValueId up = expert_matmul(g, w.expert_up, ffn_in, routing);
  const ValueId down = expert_matmul(g, w.expert_down, mul(g, gate, up), routing);
  const ValueId sum = add(g, h, expert_sum(g, down, routing));
  if (!is_recurrent) {
    return sum;
  }
  const ValueId share = activation(g, ActivationKind::sigmoid, matmul(g, ffn_in, w.share));
  const ValueId hidden = mul(g, activation(g, ActivationKind::silu, matmul(g, ffn_in, w.gate)),
                             matmul(g, ffn_in, w.up));
  return add(g, sum, mul(g, matmul(g, hidden, w.down), share));
}

Graph TinyModel::record(RowBucket bucket) const {
  GraphBuilder g(weights_.table(), bucket);
  ValueId x = embed(g, token_embed_, family_ == Family::gemma ? 16.0f : 1.0f);
  for (std::int64_t i = 0; i < size_.n_layers; ++i) {
    const auto& layer = layers_[static_cast<std::size_t>(i)];
    switch (family_) {
      case Family::llama:
        x = llama_layer(g, layer, i, x);
        break;
      case Family::gemma:
        x = gemma_layer(g, layer, i, x);
        break;
      case Family::hybrid:
        x = hybrid_layer(g, layer, i, x);
        break;
    }
  }
  ValueId logits = matmul(g, rms_norm(g, select_rows(g, x), output_norm_, 1e-5f), output_);
  if (family_ == Family::gemma) {
    logits = softcap(g, 30.0f, logits);
  }
  auto graph = g.finish(logits);
  HEARTH_ASSERT(graph.has_value());
  return *std::move(graph);
}

}  // namespace hearth::graph
