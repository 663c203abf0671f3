#include "sampling/stages/typical.h"

#include <cmath>
#include <cstddef>
#include <span>

namespace hearth::sampling {
namespace {

/// Sum of p * (logit - max_logit).
double mean_logit(std::span<const Candidate> candidates, const Softmax& distribution) {
  double sum = 0.0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    sum += static_cast<double>(distribution.weights[i]) *
           (candidates[i].logit - distribution.max_logit);
  }
  return sum / distribution.total;
}

}  // namespace

void apply_typical(const SamplingParams& params, Candidates& candidates) {
  if (params.typical_p >= 1.0) {
    return;
  }
  const Softmax distribution = candidates.softmax();
  // With z = logit - max_logit: -ln p = ln(total) - z and H = ln(total) - mean(z), so that
  // |-ln p - H| = |z - mean(z)|: no logarithm.
  const double mean = mean_logit(candidates.alive(), distribution);
  const auto distance = [&](const Candidate& candidate) {
    return std::abs((candidate.logit - distribution.max_logit) - mean);
  };
  const auto is_more_typical = [&](const Candidate& a, const Candidate& b) {
    const double distance_a = distance(a);
    const double distance_b = distance(b);
    return distance_a != distance_b ? distance_a < distance_b : ranks_before(a, b);
  };
  const double target = params.typical_p * distribution.total;
  candidates.keep_mass(
      distribution, is_more_typical, [&](double mass) { return mass > target; },
      static_cast<std::size_t>(params.min_keep));
}

}  // namespace hearth::sampling
