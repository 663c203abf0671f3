#include "engine/selftest/probe.h"

#include <cmath>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/format.h"
#include "model/synth/random_blocks.h"
#include "quant/registry.h"

namespace hearth::engine {

using graph::ValueId;
using graph::WeightId;

WeightId Probe::add(DType dtype, const Shape& shape, std::vector<std::byte> bytes) {
  data_.push_back(std::move(bytes));
  weights_.push_back({format("probe.{}", weights_.size()), {dtype, shape, data_.back()}});
  return static_cast<WeightId>(weights_.size() - 1);
}

WeightId Probe::random(DType dtype, const Shape& shape) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(*quant::tensor_bytes(dtype, shape)));
  const auto n_in = static_cast<float>(shape[shape.rank() - 1]);
  model::RandomBlocks(dtype).fill(weights_.size(), 1 / std::sqrt(n_in), bytes);
  return add(dtype, shape, std::move(bytes));
}

WeightId Probe::matrix(DType dtype, std::int64_t n_out, std::int64_t n_in) {
  return random(dtype, {n_out, n_in});
}

WeightId Probe::experts(DType dtype, std::int64_t n_out, std::int64_t n_in) {
  return random(dtype, {size_.n_experts, n_out, n_in});
}

WeightId Probe::uniform(Shape shape, float low, float high) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.elements()) * sizeof(float));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    const auto bits = model::mix_bits((weights_.size() << 32) + at) >> 40;  // 24 of them
    store(bytes.data(), low + (high - low) * static_cast<float>(bits) / (1 << 24), at);
  }
  return add(DType::f32, shape, std::move(bytes));
}

void Probe::set_embedding(DType dtype) {
  embedding_ = matrix(dtype, n_tokens, size_.width);
}

std::int64_t Probe::add_kv_layer(DType dtype, const graph::KvLayer& layer) {
  caches_.kv.dtype = dtype;
  caches_.kv.layers.push_back(layer);
  return static_cast<std::int64_t>(caches_.kv.layers.size()) - 1;
}

std::int64_t Probe::add_state_layer(const graph::StateLayer& layer) {
  caches_.states.layers.push_back(layer);
  return static_cast<std::int64_t>(caches_.states.layers.size()) - 1;
}

graph::CacheDescs Probe::caches(std::int64_t n_positions) const {
  graph::CacheDescs descs = caches_;
  descs.kv.n_blocks = ceil_div(n_positions, graph::kv_block_tokens);
  descs.states.n_slots = 1;
  return descs;
}

Result<graph::Graph> Probe::record(graph::RowBucket bucket) const {
  graph::GraphBuilder g(weights_, bucket);
  ValueId x = graph::embed(g, embedding_, 1);
  for (const Layer& layer : layers_) {
    x = layer(g, x);
  }
  return g.finish(graph::select_rows(g, x));
}

}  // namespace hearth::engine
