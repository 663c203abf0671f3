#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/assert.h"

namespace hearth::app {

struct Quantiles {
  double p10 = 0;
  double median = 0;
  double p90 = 0;
};

/// Of at least one sample; between two samples, linear.
inline Quantiles quantiles_of(std::span<const double> samples) {
  HEARTH_ASSERT(!samples.empty());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double p) {
    const double place = p * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
  };
  return {at(0.1), at(0.5), at(0.9)};
}

}  // namespace hearth::app
