#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// The k largest of the first n_columns of each row, in order of their columns:
/// x [rows, n] -> [rows, k, 2], as ColumnValue. Of equal ones those of lower columns; what is no
/// number or plus infinity counts as larger than all numbers, so that the first of it is there.
struct TopK {
  static constexpr std::string_view name = "top_k";
  std::int64_t n_columns = 0;
  std::int64_t k = 0;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId top_k(GraphBuilder& g, ValueId x, std::int64_t n_columns, std::int64_t k);

}  // namespace hearth::graph
