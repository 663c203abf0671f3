#pragma once

#include "sampling/candidates.h"
#include "sampling/params.h"

namespace hearth::sampling {

/// Top-k: keeps the k largest logits; ties at the edge go to the lower id.
void apply_top_k(const SamplingParams& params, Candidates& candidates);

}  // namespace hearth::sampling
