#pragma once

#include "sampling/candidates.h"
#include "sampling/params.h"

namespace hearth::sampling {

/// Top-p: keeps the shortest run of the most likely tokens whose probabilities sum to at least p;
/// the token that crosses p stays. Source: Holtzman et al. 2020, "The curious case of neural text
/// degeneration".
void apply_top_p(const SamplingParams& params, Candidates& candidates);

}  // namespace hearth::sampling
