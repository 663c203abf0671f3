#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Token embedding: the row of `table` for each token of the step, times `scale`.
/// table [vocab, embed] of any decodable type -> [rows, embed].
struct Embed {
  static constexpr std::string_view name = "embed";
  WeightId table{};
  float scale = 1.0f;  // gemma multiplies by sqrt(embed)

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId embed(GraphBuilder& g, WeightId table, float scale);

}  // namespace hearth::graph
