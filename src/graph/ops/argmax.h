#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// The largest of the first n_columns of each row (base/largest_value.h): x [rows, n] -> [rows, 2],
/// as ColumnValue. A greedy choice needs nothing else of logits.
struct Argmax {
  static constexpr std::string_view name = "argmax";
  std::int64_t n_columns = 0;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId argmax(GraphBuilder& g, ValueId x, std::int64_t n_columns);

}  // namespace hearth::graph
