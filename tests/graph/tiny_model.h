#pragma once
/// Small random models for the tests of graph, plan and backend: a llama-like and a gemma-like
/// transformer and a hybrid one with experts, whose weights may have any type.

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/kv_cache.h"
#include "graph/state_cache.h"

namespace hearth::graph {

/// Weights with their data. Values are about 1 in magnitude.
class RandomWeights {
 public:
  explicit RandomWeights(std::uint32_t seed) : random_(seed) {}

  WeightId add(std::string name, DType dtype, Shape shape);
  /// F32 weights with values in [low, high].
  WeightId add_uniform(std::string name, Shape shape, float low, float high);
  WeightId add_values(std::string name, Shape shape, const std::vector<float>& values);

  [[nodiscard]] const WeightTable& table() const { return table_; }
  /// The stored bytes of a weight, to damage them.
  [[nodiscard]] std::vector<std::byte>& bytes(WeightId id) { return data_[index(id)]; }

 private:
  WeightId add_bytes(std::string name, DType dtype, Shape shape, std::vector<std::byte> bytes);

  std::mt19937 random_;
  std::deque<std::vector<std::byte>> data_;
  WeightTable table_;
};

/// In the hybrid family even layers are recurrent and have a shared expert, odd ones are gated
/// attention without.
enum class Family : std::uint8_t { llama, gemma, hybrid };

struct TinySize {
  std::int64_t n_layers = 2;
  std::int64_t embed = 256;  // whole blocks of every format
  std::int64_t ffn = 256;
  std::int64_t n_heads = 4;
  std::int64_t n_kv_heads = 2;
  std::int64_t head_dim = 64;
  std::int64_t vocab = 40;
  std::int64_t window = 24;  // of every second layer of the gemma family
  // Of the hybrid family:
  std::int64_t n_key_heads = 2;
  std::int64_t n_value_heads = 4;
  std::int64_t key_dim = 32;
  std::int64_t value_dim = 64;
  HeadOrder order = HeadOrder::tiled;
  std::int64_t n_experts = 3;
  std::int64_t n_used = 2;
};

class TinyModel {
 public:
  /// Matrices take the types of `dtypes` in turn.
  TinyModel(Family family, const TinySize& size, const std::vector<DType>& dtypes);

  [[nodiscard]] Graph record(RowBucket bucket) const;
  [[nodiscard]] const WeightTable& weights() const { return weights_.table(); }
  [[nodiscard]] KvCacheDesc kv_cache(DType dtype, std::int64_t n_blocks) const;
  [[nodiscard]] StateCacheDesc states(std::int64_t n_slots) const;
  [[nodiscard]] const TinySize& size() const { return size_; }

  /// For tests of damaged weights.
  [[nodiscard]] WeightId down_of_last_layer() const { return layers_.back().down; }
  [[nodiscard]] WeightId token_embed() const { return token_embed_; }
  [[nodiscard]] RandomWeights& storage() { return weights_; }

 private:
  struct Layer {
    WeightId attn_norm, q, k, v, o, ffn_norm, gate, up, down;
    WeightId q_norm, k_norm, attn_post_norm, ffn_post_norm;  // gemma
    // hybrid
    WeightId qkv, z, write_gate, decay_gate, conv, rate, bias, head_norm, ssm_out;
    WeightId router, share;
    ExpertMatMul expert_gate, expert_up, expert_down;
  };

  WeightId matrix(const std::string& name, std::int64_t out, std::int64_t in);
  WeightId experts(const std::string& name, std::int64_t out, std::int64_t in);
  WeightId norm(const std::string& name, std::int64_t n);
  void add_hybrid_layer(const std::string& prefix, bool is_recurrent);
  ValueId delta_net(GraphBuilder& g, const Layer& w, std::int64_t state_layer, ValueId x) const;
  ValueId gated_attention(GraphBuilder& g, const Layer& w, std::int64_t kv_layer, ValueId x) const;
  ValueId hybrid_layer(GraphBuilder& g, const Layer& w, std::int64_t layer, ValueId x) const;
  ValueId llama_layer(GraphBuilder& g, const Layer& w, std::int64_t layer, ValueId x) const;
  ValueId gemma_layer(GraphBuilder& g, const Layer& w, std::int64_t layer, ValueId x) const;
  [[nodiscard]] AttentionParams attention_params(std::int64_t layer) const;

  Family family_;
  TinySize size_;
  std::vector<DType> dtypes_;
  std::size_t next_dtype_ = 0;
  RandomWeights weights_;
  WeightId token_embed_{}, output_norm_{}, output_{};
  std::vector<Layer> layers_;
};

}  // namespace hearth::graph
