#include "sampling/stages/logit_bias.h"

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

}  // namespace hearth::sampling
