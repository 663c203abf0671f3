#pragma once
/// Probabilities from logits. The one place where sampling calls exp and log.

#include <cmath>
#include <span>

#include "base/math.h"

namespace hearth::sampling {

/// p(i) = weights[i] / total, with weights[i] = exp(logits[i] - max_logit).
struct Softmax {
  std::span<const float> weights;
  double total = 0.0;
  float max_logit = 0.0f;

  [[nodiscard]] float weight(float logit) const { return canonical_exp(logit - max_logit); }

  /// Natural logarithm of p; only reported, never decided on.
  [[nodiscard]] double log_probability(float logit) const {
    return logit - max_logit - std::log(total);
  }
};

/// Replaces logits, of which `max_logit` is the largest, by their weights; sums these in order.
[[nodiscard]] Softmax softmax_in_place(std::span<float> logits, float max_logit);

}  // namespace hearth::sampling
