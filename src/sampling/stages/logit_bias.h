#pragma once

#include <span>

#include "sampling/params.h"

namespace hearth::sampling {

/// Logit bias: z += bias; a bias at or below -100 bans the token. `logits` is indexed by token id;
/// validate() has checked the tokens.
void apply_logit_bias(const SamplingParams& params, std::span<float> logits);

}  // namespace hearth::sampling
