#pragma once
/// Random floats for weights and activations of tests.

#include <random>

namespace hearth::graph {

/// In [low, high]. std::uniform_real_distribution takes two logarithms for each number, which was
/// a tenth of the time of the backend's tests.
inline float uniform_float(std::mt19937& random, float low, float high) {
  return low + (high - low) * (static_cast<float>(random() >> 8) * 0x1p-24f);
}

}  // namespace hearth::graph
