#include "sampling/stages/temperature.h"

#include "base/assert.h"

namespace hearth::sampling {

void apply_temperature(const SamplingParams& params, Candidates& candidates) {
  HEARTH_ASSERT(params.temperature > 0.0);
  const float largest = candidates.max_logit();
  for (Candidate& candidate : candidates.alive()) {
    candidate.logit = static_cast<float>((candidate.logit - largest) / params.temperature);
  }
}

}  // namespace hearth::sampling
