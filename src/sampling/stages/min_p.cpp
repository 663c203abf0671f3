#include "sampling/stages/min_p.h"

#include <algorithm>
#include <cstddef>

namespace hearth::sampling {

void apply_min_p(const SamplingParams& params, Candidates& candidates) {
  if (params.min_p <= 0.0) {
    return;
  }
  // The most likely token has weight 1, so weights are p / p_max.
  const Softmax distribution = candidates.softmax();
  const auto is_kept = [&](float weight) { return weight >= params.min_p; };
  const auto n_kept =
      std::count_if(distribution.weights.begin(), distribution.weights.end(), is_kept);
  if (n_kept < params.min_keep) {
    candidates.keep_first(static_cast<std::size_t>(params.min_keep), ranks_before);
  } else {
    candidates.keep_where([&](std::size_t i) { return is_kept(distribution.weights[i]); });
  }
}

}  // namespace hearth::sampling
