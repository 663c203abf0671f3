#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/caches.h"

namespace hearth::engine {

/// How large the operations of a probe are: small enough for the reference, or as a real model's.
struct ProbeSize {
  std::int64_t width = 256;  // of the values between layers
  std::int64_t hidden = 256;
  std::int64_t n_heads = 4;
  std::int64_t n_kv_heads = 2;
  std::int64_t head_dim = 64;
  std::int64_t n_state_heads = 4;  // value heads; half as many key heads
  std::int64_t state_dim = 128;    // of keys and values
  std::int64_t n_experts = 4;
  std::int64_t n_used = 2;
  std::int64_t n_repeats = 1;  // of small layers; large ones have fewer
};

/// A model of one kind of operation: an embedding, and layers that do it with random weights of
/// their own. Deterministic. Sessions refer to its weights.
class Probe {
 public:
  using Layer = std::function<graph::ValueId(graph::GraphBuilder&, graph::ValueId)>;

  explicit Probe(const ProbeSize& size) : size_(size) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  [[nodiscard]] const ProbeSize& size() const { return size_; }

  /// Random weights; a product by them keeps the magnitude of its input.
  graph::WeightId matrix(DType dtype, std::int64_t n_out, std::int64_t n_in);
  graph::WeightId experts(DType dtype, std::int64_t n_out, std::int64_t n_in);
  /// F32 values, evenly distributed.
  graph::WeightId uniform(Shape shape, float low, float high);
  graph::WeightId norm(std::int64_t n) { return uniform({n}, 0.9f, 1.1f); }

  void set_embedding(DType dtype);
  void add_layer(Layer layer) { layers_.push_back(std::move(layer)); }
  /// Their index among the layers of their cache.
  std::int64_t add_kv_layer(DType dtype, const graph::KvLayer& layer);
  std::int64_t add_state_layer(const graph::StateLayer& layer);

  [[nodiscard]] const graph::WeightTable& weights() const { return weights_; }
  /// Caches of one sequence of `n_tokens`.
  [[nodiscard]] graph::CacheDescs caches(std::int64_t n_tokens) const;
  [[nodiscard]] Result<graph::Graph> record(graph::RowBucket bucket) const;

  static constexpr std::int64_t n_tokens = 64;  // in the embedding

 private:
  graph::WeightId add(DType dtype, const Shape& shape, std::vector<std::byte> bytes);
  graph::WeightId random(DType dtype, const Shape& shape);

  ProbeSize size_;
  std::deque<std::vector<std::byte>> data_;
  graph::WeightTable weights_;
  graph::WeightId embedding_{};
  graph::CacheDescs caches_;
  std::vector<Layer> layers_;
};

}  // namespace hearth::engine
