#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// a * b, where b has the shape of a, or one number for each of its rows.
struct Mul {
  static constexpr std::string_view name = "mul";

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId mul(GraphBuilder& g, ValueId a, ValueId b);

}  // namespace hearth::graph
