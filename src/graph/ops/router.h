#pragma once

#include "base/lanes.h"
#include "base/math.h"
#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Chooses experts: softmax over the logits of all, then the n_used most probable, whose
/// probabilities are divided by their sum. Equal ones go to the lower number.
/// logits [rows, n_experts] -> routing [rows, 2 n_used]: the chosen experts by falling probability,
/// as (exact) floats, then their weights. The places in that order are the row's slots.
///
/// Canonical arithmetic: e^(logit - maximum) summed in lanes (base/lanes.h), the chosen ones in the
/// order of slots. A row with a NaN takes experts 0, 1, ... with NaN weights, so that the fault
/// reaches the logits of that row.
struct Router {
  static constexpr std::string_view name = "router";
  std::int64_t n_used = 0;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId router(GraphBuilder& g, ValueId logits, std::int64_t n_used);

/// The experts and weights of one row of routing.
struct Routing {
  const float* experts;  // [n_used]
  const float* weights;  // [n_used]

  Routing(const float* row, std::int64_t n_used) : experts(row), weights(row + n_used) {}
  [[nodiscard]] std::int64_t expert(std::int64_t slot) const {
    return static_cast<std::int64_t>(experts[slot]);
  }
};

/// The canonical arithmetic on one row; `probabilities` [n_experts] is scratch.
inline void route_row(const float* logits, std::int64_t n_experts, std::int64_t n_used,
                      float* probabilities, float* routing) {
  float maximum = logits[0];
  for (std::int64_t i = 1; i < n_experts; ++i) {
    maximum = logits[i] > maximum ? logits[i] : maximum;
  }
  Lanes lanes{};
  for (std::int64_t i = 0; i < n_experts; ++i) {
    probabilities[i] = canonical_exp(logits[i] - maximum);
  }
  for (std::int64_t i = 0; i < n_experts; ++i) {
    lanes[static_cast<std::size_t>(i) % n_lanes] += probabilities[i];
  }
  const float sum = sum_lanes(lanes);  // NaN if a logit is
  for (std::int64_t i = 0; i < n_experts; ++i) {
    probabilities[i] /= sum;
  }
  float* weights = routing + n_used;
  float chosen_sum = 0;
  for (std::int64_t slot = 0; slot < n_used; ++slot) {
    std::int64_t best = sum == sum ? 0 : slot;
    for (std::int64_t i = 1; i < n_experts; ++i) {
      best = probabilities[i] > probabilities[best] ? i : best;
    }
    routing[slot] = static_cast<float>(best);
    weights[slot] = probabilities[best];
    chosen_sum += weights[slot];
    probabilities[best] = sum == sum ? -1.0f : probabilities[best];  // not again
  }
  for (std::int64_t slot = 0; slot < n_used; ++slot) {
    weights[slot] /= chosen_sum;
  }
}

}  // namespace hearth::graph
