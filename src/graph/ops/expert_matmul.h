#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Projections by the chosen experts: y[row, slot] = W[expert of the slot] x, with the rows
/// [first_row, first_row + n_out) of each expert's matrix, so that gate and up may share a tensor.
/// weight [n_experts, out, in] of any decodable type, routing as the Router writes it,
/// x [rows, in] for all slots alike or [rows, n_used * in] for each its own
/// -> [rows, n_used * n_out].
///
/// Canonical arithmetic: that of MatMul; a slot's x is quantized by itself.
struct ExpertMatMul {
  static constexpr std::string_view name = "expert_matmul";
  WeightId weight{};
  std::int64_t first_row = 0;
  std::int64_t n_out = 0;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId expert_matmul(GraphBuilder& g, const ExpertMatMul& matmul, ValueId x, ValueId routing);

}  // namespace hearth::graph
