#pragma once

#include <cstddef>

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// The largest of the first n_columns of each row (base/largest_value.h): x [rows, n] -> [rows, 2],
/// its column, as an (exact) float, and its value. A greedy choice needs nothing else of logits.
struct Argmax {
  static constexpr std::string_view name = "argmax";
  std::int64_t n_columns = 0;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId argmax(GraphBuilder& g, ValueId x, std::int64_t n_columns);

/// A row of the result.
struct ArgmaxRow {
  float column_number;
  float value;

  [[nodiscard]] std::size_t column() const { return static_cast<std::size_t>(column_number); }
};

}  // namespace hearth::graph
