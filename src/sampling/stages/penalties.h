#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sampling/history.h"
#include "sampling/params.h"
#include "sampling/token_counter.h"

namespace hearth::sampling {

/// Whether any of the penalties is on.
[[nodiscard]] bool penalises(const SamplingParams& params);

/// Of how many tokens at most the penalties lower the logits, in a history of up to `n_tokens`;
/// nullopt where they may raise one.
[[nodiscard]] std::optional<std::int64_t> lowered_by_penalties(const SamplingParams& params,
                                                               std::int64_t n_tokens);

/// Repetition penalty r, once for each distinct token of the window: z > 0 ? z / r : z * r; then
/// frequency and presence penalties, for each token that occurs: z -= occurrences * f + s.
/// `logits` is indexed by token id. Source of the first: Keskar et al. 2019, "CTRL".
void apply_penalties(const SamplingParams& params, const History& history, TokenCounter& counter,
                     std::span<float> logits);

}  // namespace hearth::sampling
