#include "sampling/stages/top_k.h"

#include <cstddef>

namespace hearth::sampling {

void apply_top_k(const SamplingParams& params, Candidates& candidates) {
  if (params.top_k > 0) {
    candidates.keep_first(static_cast<std::size_t>(params.top_k), ranks_before);
  }
}

}  // namespace hearth::sampling
