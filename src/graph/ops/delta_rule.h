#pragma once

#include <cmath>

#include "base/lanes.h"
#include "base/math.h"
#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Which key head a value head belongs to.
enum class HeadOrder : std::uint8_t {
  grouped,  // value heads of one key head are neighbours: v / (n_value_heads / n_key_heads)
  tiled,    // they are n_key_heads apart: v mod n_key_heads
};

/// What a recurrent layer is, apart from its inputs and weights.
struct DeltaRuleParams {
  std::int64_t layer = 0;  // index into the layers of the state cache
  std::int64_t n_key_heads = 0;
  std::int64_t n_value_heads = 0;  // a multiple of n_key_heads
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  HeadOrder order{};

  bool operator==(const DeltaRuleParams&) const = default;

  [[nodiscard]] std::int64_t key_features() const { return n_key_heads * key_dim; }
  [[nodiscard]] std::int64_t value_features() const { return n_value_heads * value_dim; }
  [[nodiscard]] std::int64_t key_head(std::int64_t value_head) const {
    return order == HeadOrder::grouped ? value_head / (n_value_heads / n_key_heads)
                                       : value_head % n_key_heads;
  }
};

/// Gated delta rule: each value head keeps a memory S [key_dim, value_dim] of its sequence.
///   S <- e^g S;  delta = beta (v - S^T k);  S <- S + k delta^T;  o = S^T q
/// with k and q of length 1, q further divided by sqrt(key_dim), beta = sigmoid(write_gate),
/// g = rate softplus(decay_gate + bias).
/// qkv [rows, 2 key_features + value_features] (q, k, v), write_gate and decay_gate [rows,
/// n_value_heads], rate and bias [n_value_heads] f32 -> [rows, value_features].
///
/// Canonical arithmetic: both contractions with S are four partial sums by key dimension mod 4,
/// added as (0+1)+(2+3); S e^g is rounded before it is used. Rows of a sequence are taken in order,
/// one at a time, so a prompt gives the same bits in whatever pieces it comes.
/// Source: Yang et al. 2024, "Gated Delta Networks", equation 10.
struct DeltaRule {
  static constexpr std::string_view name = "delta_rule";
  DeltaRuleParams params;
  WeightId rate{};
  WeightId bias{};

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

/// The inputs of DeltaRule that flow through the graph.
struct DeltaRuleInputs {
  ValueId qkv{}, write_gate{}, decay_gate{};
};
ValueId delta_rule(GraphBuilder& g, const DeltaRuleParams& params, const DeltaRuleInputs& inputs,
                   WeightId rate, WeightId bias);

/// x / sqrt(sum(x^2) + 1e-6) * scale, n values. Sums in the order of base/lanes.h.
inline void unit_vector(const float* x, std::int64_t n, float scale, float* y) {
  constexpr float epsilon = 1e-6f;
  const float inverse = 1.0f / std::sqrt(sum_of_squares(x, static_cast<std::size_t>(n)) + epsilon);
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = x[i] * inverse * scale;
  }
}

/// e^g of one head.
inline float decay_of(float rate, float bias, float decay_gate) {
  return canonical_exp(rate * canonical_softplus(decay_gate + bias));
}

}  // namespace hearth::graph
