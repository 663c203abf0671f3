#pragma once
/// Ops that treat every element alike: add, mul, activation, softcap.

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// a + b of equal shape.
struct Add {
  static constexpr std::string_view name = "add";

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

/// a * b of equal shape.
struct Mul {
  static constexpr std::string_view name = "mul";

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

enum class ActivationKind : std::uint8_t { silu, gelu_tanh };

/// SiLU (x sigmoid(x)) or GELU in its tanh form, by the canonical exp of base/math.h.
struct Activation {
  static constexpr std::string_view name = "activation";
  ActivationKind kind{};

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

/// cap * tanh(x / cap): keeps logits within +-cap (gemma).
struct Softcap {
  static constexpr std::string_view name = "softcap";
  float cap = 0;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId add(GraphBuilder& g, ValueId a, ValueId b);
ValueId mul(GraphBuilder& g, ValueId a, ValueId b);
ValueId activation(GraphBuilder& g, ActivationKind kind, ValueId x);
ValueId softcap(GraphBuilder& g, float cap, ValueId x);

}  // namespace hearth::graph
