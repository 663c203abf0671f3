#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sampling/params.h"

namespace hearth::sampling {

/// Logit bias: z += bias; a bias at or below -100 bans the token. `logits` is indexed by token id;
/// validate() has checked the tokens.
void apply_logit_bias(const SamplingParams& params, std::span<float> logits);

/// How many logits the biases lower; nullopt where one is raised.
[[nodiscard]] std::optional<std::int64_t> lowered_by_logit_bias(const SamplingParams& params);

}  // namespace hearth::sampling
