#pragma once

#include "sampling/candidates.h"
#include "sampling/params.h"

namespace hearth::sampling {

/// Min-p: keeps the tokens with p >= min_p times the largest p. Source: Nguyen et al. 2024,
/// "Turning up the heat: min-p sampling".
void apply_min_p(const SamplingParams& params, Candidates& candidates);

}  // namespace hearth::sampling
