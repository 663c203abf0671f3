#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// What the chosen experts say, weighted: y = sum over slots of weight[slot] x[slot].
/// x [rows, n_used * n], routing as the Router writes it -> [rows, n]. Summed in the order of the
/// slots by fused multiply-adds, so that how rows were gathered for the products changes nothing.
struct ExpertSum {
  static constexpr std::string_view name = "expert_sum";

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId expert_sum(GraphBuilder& g, ValueId x, ValueId routing);

}  // namespace hearth::graph
