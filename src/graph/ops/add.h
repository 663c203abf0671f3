#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// a + b of equal shape.
struct Add {
  static constexpr std::string_view name = "add";

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId add(GraphBuilder& g, ValueId a, ValueId b);

}  // namespace hearth::graph
