#pragma once

#include <optional>

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Linear projection y = x weight^T (+ bias).
/// x [rows, in], weight [out, in] of any decodable type, bias [out] f32 -> [rows, out].
///
/// Canonical arithmetic: formats with an integer form multiply int8 activations
/// (quant/integer_form.h); all others are widened to f32 and summed by fused multiply-adds into
/// four partial sums (by k mod 4), added as (0+1)+(2+3).
struct MatMul {
  static constexpr std::string_view name = "matmul";
  WeightId weight{};
  std::optional<WeightId> bias;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId matmul(GraphBuilder& g, ValueId x, WeightId weight,
               std::optional<WeightId> bias = std::nullopt);

}  // namespace hearth::graph
