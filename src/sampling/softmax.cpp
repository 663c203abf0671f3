#include "sampling/softmax.h"

#include <cstddef>

// The fused multiply-adds of canonical_exp are library calls on the oldest x86-64 processors and
// single instructions since 2013. The results are the same bits, so the faster version is chosen at
// run time.
#if defined(__x86_64__) && defined(__ELF__)
#define HEARTH_WITH_FMA_WHERE_PRESENT __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define HEARTH_WITH_FMA_WHERE_PRESENT
#endif

namespace hearth::sampling {
namespace {

HEARTH_WITH_FMA_WHERE_PRESENT
void replace_by_weights(float* logits, std::size_t n, float max_logit) {
  for (std::size_t i = 0; i < n; ++i) {
    logits[i] = canonical_exp(logits[i] - max_logit);
  }
}

}  // namespace

Softmax softmax_in_place(std::span<float> logits, float max_logit) {
  replace_by_weights(logits.data(), logits.size(), max_logit);
  double total = 0.0;
  for (const float weight : logits) {
    total += weight;
  }
  return {.weights = logits, .total = total, .max_logit = max_logit};
}

}  // namespace hearth::sampling
