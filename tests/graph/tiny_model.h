#pragma once
/// Small random models for the tests of graph, plan and backend: a llama-like and a gemma-like
/// transformer whose weights may have any type.

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/kv_cache.h"

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

enum class Family : std::uint8_t { llama, gemma };

struct TinySize {
  std::int64_t n_layers = 2;
  std::int64_t embed = 256;  // whole blocks of every format
  std::int64_t ffn = 256;
  std::int64_t n_heads = 4;
  std::int64_t n_kv_heads = 2;
  std::int64_t head_dim = 64;
  std::int64_t vocab = 40;
  std::int64_t window = 24;  // of every second layer of the gemma family
};

class TinyModel {
 public:
  /// Matrices take the types of `dtypes` in turn.
  TinyModel(Family family, const TinySize& size, const std::vector<DType>& dtypes);

  [[nodiscard]] Graph record(RowBucket bucket) const;
  [[nodiscard]] const WeightTable& weights() const { return weights_.table(); }
  [[nodiscard]] KvCacheDesc kv_cache(DType dtype, std::int64_t n_blocks) const;
  [[nodiscard]] const TinySize& size() const { return size_; }

  /// For tests of damaged weights.
  [[nodiscard]] WeightId down_of_last_layer() const { return layers_.back().down; }
  [[nodiscard]] WeightId token_embed() const { return token_embed_; }
  [[nodiscard]] RandomWeights& storage() { return weights_; }

 private:
  struct Layer {
    WeightId attn_norm, q, k, v, o, ffn_norm, gate, up, down;
    WeightId q_norm, k_norm, attn_post_norm, ffn_post_norm;  // gemma
  };

  WeightId matrix(const std::string& name, std::int64_t out, std::int64_t in);
  WeightId norm(const std::string& name, std::int64_t n);
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
