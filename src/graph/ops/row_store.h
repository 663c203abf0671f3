#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// x, whose rows also go to the row store, to the places that the step names,
/// if it names any: x [rows, n] -> [rows, n].
struct StoreRows {
  static constexpr std::string_view name = "store_rows";

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

/// Rows of the row store, from the places that the step names: -> [rows, features].
struct LoadRows {
  static constexpr std::string_view name = "load_rows";
  std::int64_t features = 0;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId store_rows(GraphBuilder& g, ValueId x);
ValueId load_rows(GraphBuilder& g, std::int64_t features);

}  // namespace hearth::graph
