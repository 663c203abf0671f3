#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Which columns of a row are meant: `width` of every `period`, from `start` on.
struct ColumnPattern {
  std::int64_t period = 0;
  std::int64_t start = 0;
  std::int64_t width = 0;

  bool operator==(const ColumnPattern&) const = default;
};

/// Takes some columns of each row: x [rows, n * period] -> [rows, n * width]. Query and gate of a
/// projection that has them in turn, head by head, are two of these.
struct Columns {
  static constexpr std::string_view name = "columns";
  ColumnPattern pattern;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId columns(GraphBuilder& g, ValueId x, const ColumnPattern& pattern);

}  // namespace hearth::graph
