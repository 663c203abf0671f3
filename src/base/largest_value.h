#pragma once

#include <cstddef>
#include <limits>
#include <span>

namespace hearth {

/// What one pass over values finds.
struct LargestValue {
  float value = -std::numeric_limits<float>::infinity();
  std::size_t index = 0;

  /// Neither NaN nor plus infinity, hence none of the values is.
  [[nodiscard]] bool is_number() const { return value < std::numeric_limits<float>::infinity(); }
};

/// The first value that is NaN or plus infinity if there is one, else the first of the largest;
/// minus infinity at 0 of none. Vocabularies have a quarter of a million tokens, so this goes
/// through them in vectors.
[[nodiscard]] LargestValue largest_value(std::span<const float> values);

}  // namespace hearth
