#pragma once
/// The 8-bit floats of FP8 checkpoints.

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/half.h"

namespace hearth::model {

/// Sign, 4 bits of exponent, 3 of mantissa; no infinities, NaN is 0x7f and 0xff.
/// Source: Micikevicius et al. 2022, "FP8 Formats for Deep Learning".
struct Float8E4M3 {
  std::uint8_t bits;
};

[[nodiscard]] constexpr bool is_nan(Float8E4M3 x) {
  return (x.bits & 0x7f) == 0x7f;
}

/// The value of a code that is not NaN.
[[nodiscard]] constexpr double to_double(Float8E4M3 x) {
  // The exponent and mantissa of a double, with the biases 7 and 1023.
  const auto exponent = static_cast<std::uint64_t>((x.bits >> 3) & 15);
  const auto mantissa = static_cast<std::uint64_t>(x.bits & 7);
  const double magnitude =
      exponent == 0 ? static_cast<double>(mantissa) * 0x1p-9
                    : std::bit_cast<double>(((exponent + 1016) << 52) | (mantissa << 49));
  return (x.bits & 0x80) != 0 ? -magnitude : magnitude;
}

/// Rounds a double once, to nearest even. By way of f32 it would be rounded twice; so that f32 is
/// rounded to odd, which cannot lie in the middle between two of the shorter numbers.
[[nodiscard]] inline BFloat16 round_to_bfloat16(double x) {
  const auto nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || !std::isfinite(nearest)) {
    return to_bfloat16(nearest);
  }
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(x)) {
    --bits;  // towards zero
  }
  return to_bfloat16(std::bit_cast<float>(bits | 1u));
}

}  // namespace hearth::model
