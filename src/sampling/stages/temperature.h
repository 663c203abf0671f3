#pragma once

#include "sampling/candidates.h"
#include "sampling/params.h"

namespace hearth::sampling {

/// Temperature: logits become (z - max) / T, which has the softmax of z / T and cannot overflow.
/// T is above 0.
void apply_temperature(const SamplingParams& params, Candidates& candidates);

}  // namespace hearth::sampling
