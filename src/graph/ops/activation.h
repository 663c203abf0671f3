#pragma once

#include "base/math.h"
#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

enum class ActivationKind : std::uint8_t { silu, gelu_tanh, sigmoid };

/// SiLU (x sigmoid(x)), GELU in its tanh form or the sigmoid, by the canonical exp of base/math.h.
struct Activation {
  static constexpr std::string_view name = "activation";
  ActivationKind kind{};

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

/// One value.
inline float activate(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::silu:
      return canonical_silu(x);
    case ActivationKind::gelu_tanh:
      return canonical_gelu_tanh(x);
    case ActivationKind::sigmoid:
      return canonical_sigmoid(x);
  }
  return x;
}

ValueId activation(GraphBuilder& g, ActivationKind kind, ValueId x);

}  // namespace hearth::graph
