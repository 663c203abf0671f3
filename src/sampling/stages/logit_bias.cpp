#include "sampling/stages/logit_bias.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/assert.h"

namespace hearth::sampling {
namespace {

constexpr double ban = -100.0;  // the lowest bias of the OpenAI API, which means "never"

}  // namespace

void apply_logit_bias(const SamplingParams& params, std::span<float> logits) {
  for (const TokenBias& entry : params.logit_bias) {
    const auto index = static_cast<std::size_t>(entry.token);
    HEARTH_ASSERT(index < logits.size());
    logits[index] = entry.bias <= ban ? -std::numeric_limits<float>::infinity()
                                      : static_cast<float>(logits[index] + entry.bias);
  }
}

std::optional<std::int64_t> lowered_by_logit_bias(const SamplingParams& params) {
  if (std::ranges::any_of(params.logit_bias,
                          [](const TokenBias& entry) { return entry.bias > 0.0; })) {
    return std::nullopt;
  }
  return std::ssize(params.logit_bias);
}

}  // namespace hearth::sampling
