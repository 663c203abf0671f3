#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Keeps the rows that ask for logits: x [batch rows, n] -> [logit rows, n].
struct SelectRows {
  static constexpr std::string_view name = "select_rows";
  std::int64_t n_logit_rows = 0;  // capacity of the row bucket

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId select_rows(GraphBuilder& g, ValueId x);

}  // namespace hearth::graph
