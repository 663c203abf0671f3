#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

enum class ActivationKind : std::uint8_t { silu, gelu_tanh };

/// SiLU (x sigmoid(x)) or GELU in its tanh form, by the canonical exp of base/math.h.
struct Activation {
  static constexpr std::string_view name = "activation";
  ActivationKind kind{};

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId activation(GraphBuilder& g, ActivationKind kind, ValueId x);

}  // namespace hearth::graph
