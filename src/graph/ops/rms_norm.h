#pragma once

#include <cmath>

#include "base/lanes.h"
#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Root-mean-square normalisation of each run of n values: y = x / sqrt(mean(x^2) + eps) * weight.
/// x [rows, k n], weight [n] f32 -> [rows, k n]; k > 1 normalises per head. Sums in the order of
/// base/lanes.h. Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".
struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  WeightId weight{};
  float eps = 0;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId rms_norm(GraphBuilder& g, ValueId x, WeightId weight, float eps);

/// The canonical arithmetic on one run of n values; y may be x.
inline void rms_norm_run(const float* x, const float* weight, std::int64_t n, float eps, float* y) {
  const float mean = sum_of_squares(x, static_cast<std::size_t>(n)) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = x[i] * inverse * weight[i];
  }
}

}  // namespace hearth::graph
