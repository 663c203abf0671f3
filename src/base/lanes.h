#pragma once
/// Sums in a fixed order: 16 partial sums by index mod 16, then a halving tree. Part of the
/// canonical arithmetic, and the order in which one 512-bit, two 256-bit or four 128-bit vector
/// accumulators add naturally.

#include <array>
#include <cmath>
#include <cstddef>

namespace hearth {

inline constexpr std::size_t n_lanes = 16;
using Lanes = std::array<float, n_lanes>;

/// Lane j takes lane j + 8, then j + 4, j + 2, j + 1.
[[nodiscard]] inline float sum_lanes(Lanes lanes) {
  for (std::size_t half = n_lanes / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) {
      lanes[j] += lanes[j + half];
    }
  }
  return lanes[0];
}

/// Sum of x[i]^2.
[[nodiscard]] inline float sum_of_squares(const float* x, std::size_t n) {
  Lanes lanes{};
  std::size_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    for (std::size_t j = 0; j < n_lanes; ++j) {
      lanes[j] = std::fma(x[i + j], x[i + j], lanes[j]);
    }
  }
  for (std::size_t j = 0; i + j < n; ++j) {
    lanes[j] = std::fma(x[i + j], x[i + j], lanes[j]);
  }
  return sum_lanes(lanes);
}

}  // namespace hearth
