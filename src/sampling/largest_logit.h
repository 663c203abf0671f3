#pragma once

#include <cstddef>
#include <span>

namespace hearth::sampling {

/// What one pass over logits finds.
struct LargestLogit {
  bool are_numbers = true;  // none is NaN or plus infinity; otherwise the rest means nothing
  float logit = 0.0f;       // minus infinity if there is no other
  std::size_t index = 0;    // the lowest with that logit
};

/// Vocabularies have a quarter of a million tokens, so this goes through them in vectors, once.
[[nodiscard]] LargestLogit largest_logit(std::span<const float> logits);

}  // namespace hearth::sampling
