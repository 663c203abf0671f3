#include "sampling/stages/top_p.h"

#include <cstddef>

namespace hearth::sampling {

void apply_top_p(const SamplingParams& params, Candidates& candidates) {
  if (params.top_p >= 1.0) {
    return;
  }
  const Softmax distribution = candidates.softmax();
  const double target = params.top_p * distribution.total;
  candidates.keep_mass(
      distribution, ranks_before, [&](double mass) { return mass >= target; },
      static_cast<std::size_t>(params.min_keep));
}

}  // namespace hearth::sampling
