#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// cap * tanh(x / cap): keeps logits within +-cap (gemma).
struct Softcap {
  static constexpr std::string_view name = "softcap";
  float cap = 0;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId softcap(GraphBuilder& g, float cap, ValueId x);

}  // namespace hearth::graph
