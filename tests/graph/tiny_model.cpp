#include "tests/graph/tiny_model.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/half.h"
#include "quant/registry.h"
#include "tests/quant/random_blocks.h"

namespace hearth::graph {
namespace {

template <class Stored, class Convert>
std::vector<std::byte> stored_floats(std::int64_t n, std::mt19937& random, Convert convert) {
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<std::byte> bytes(static_cast<std::size_t>(n) * sizeof(Stored));
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(Stored)) {
    store<Stored>(bytes.data(), convert(uniform(random)), i);
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
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (auto& value : values) {
    value = uniform(random_);
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

WeightId TinyModel::norm(const std::string& name, std::int64_t n) {
  // Small, so that scores stay in the range where a softmax is sensitive.
  return weights_.add_uniform(name, Shape{n}, 0.01f, 0.03f);
}

KvCacheDesc TinyModel::kv_cache(DType dtype, std::int64_t n_blocks) const {
  return {dtype, n_blocks,
          std::vector<KvLayer>(static_cast<std::size_t>(size_.n_layers),
                               KvLayer{size_.n_kv_heads, size_.head_dim})};
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

Graph TinyModel::record(RowBucket bucket) const {
  GraphBuilder g(weights_.table(), bucket);
  ValueId x = embed(g, token_embed_, family_ == Family::gemma ? 16.0f : 1.0f);
  for (std::int64_t i = 0; i < size_.n_layers; ++i) {
    const auto& layer = layers_[static_cast<std::size_t>(i)];
    x = family_ == Family::llama ? llama_layer(g, layer, i, x) : gemma_layer(g, layer, i, x);
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
