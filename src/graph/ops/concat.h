#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Two rows side by side: a [rows, m], b [rows, n] -> [rows, m + n].
struct Concat {
  static constexpr std::string_view name = "concat";

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId concat(GraphBuilder& g, ValueId a, ValueId b);

}  // namespace hearth::graph
