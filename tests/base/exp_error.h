#pragma once
/// Errors in units in the last place, and the sweep over the arguments of canonical_exp.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/math.h"

namespace hearth {

/// Distance of `actual` from the exact value in units in the last place of the exact value.
inline double ulps(float actual, double exact) {
  const auto nearest = static_cast<float>(std::abs(exact));
  const auto next = std::nextafter(nearest, std::numeric_limits<float>::infinity());
  return std::abs(static_cast<double>(actual) - exact) /
         (static_cast<double>(next) - static_cast<double>(nearest));
}

/// The worst error in ulp over every `stride`-th float from 2^-26 in magnitude up to the bounds of
/// the argument. Below 2^-26 the polynomial's last step, fma(q r + 1, r, 1), is 1 or its neighbour.
inline double worst_exp_error(std::uint32_t stride) {
  double worst = 0;
  for (const float bound : {88.7f, -87.3f}) {
    const auto first = std::bit_cast<std::uint32_t>(std::copysign(0x1p-26f, bound));
    const auto last = std::bit_cast<std::uint32_t>(bound);
    for (std::uint32_t bits = first; bits <= last; bits += stride) {
      const auto x = std::bit_cast<float>(bits);
      worst = std::max(worst, ulps(canonical_exp(x), std::exp(static_cast<double>(x))));
    }
  }
  return worst;
}

}  // namespace hearth
