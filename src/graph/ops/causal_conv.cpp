#include "graph/ops/causal_conv.h"

#include <cmath>

#include "base/fail.h"
#include "base/math.h"
#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> CausalConv::infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                                    std::int64_t /*n_rows*/) const {
  const auto& shape = tensor(weights, weight).shape;
  const std::int64_t taps = shape.rank() == 2 ? shape.back() : 0;
  HEARTH_TRY(expect_f32_weight(name, weights, weight, Shape{inputs[0].features, taps}));
  if (taps < 2) {
    return fail(ErrorCode::invalid_file, "causal_conv: tensor '{}' has {} taps, expected 2 or more",
                weights[index(weight)].name, taps);
  }
  return inputs[0];
}

void CausalConv::run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const {
  const std::int64_t taps = tensor(context.weights, weight).shape.back();
  const std::int64_t ring_rows = taps - 1;
  const std::int64_t channels = out.features;
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const std::int64_t position = context.step.positions[static_cast<std::size_t>(row)];
    float* ring = context.states.ring_for(context.step, row, layer, 0, channels);
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      const float* w = f32_data(context.weights, weight) + channel * taps;
      // Position p - ring_rows + j is in the ring's row (p + j) mod ring_rows.
      float sum = 0;
      for (std::int64_t j = 0; j < ring_rows; ++j) {
        sum = std::fma(w[j], ring[(position + j) % ring_rows * channels + channel], sum);
      }
      const float x = inputs[0].row(row)[channel];
      sum = std::fma(w[ring_rows], x, sum);
      ring[position % ring_rows * channels + channel] = x;
      out.row(row)[channel] = canonical_silu(sum);
    }
  }
}

ValueId causal_conv(GraphBuilder& g, std::int64_t layer, ValueId x, WeightId weight) {
  return g.add(CausalConv{layer, weight}, {x});
}

}  // namespace hearth::graph
