#pragma once

#include "sampling/candidates.h"
#include "sampling/params.h"

namespace hearth::sampling {

/// Locally typical sampling: ranks tokens by |-ln p - H|, with H the entropy, and keeps the
/// shortest run whose probabilities sum to more than typical_p. Source: Meister et al. 2023,
/// "Locally typical sampling".
void apply_typical(const SamplingParams& params, Candidates& candidates);

}  // namespace hearth::sampling
