#include "graph/ops/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/fail.h"
#include "graph/builder.h"

namespace hearth::graph {
namespace {

/// The pair index at which a wavelength makes `rotations` turns within the original context.
double pair_of_rotations(const RopeParams& params, double rotations) {
  return static_cast<double>(params.n_rot) *
         std::log(static_cast<double>(params.yarn->original_context) /
                  (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(static_cast<double>(params.base)));
}

/// YaRN: fast pairs keep their frequency, slow ones are interpolated, a linear ramp lies between.
double yarn_frequency(const RopeParams& params, double extrapolated, std::int64_t pair) {
  const auto& yarn = *params.yarn;
  const double interpolated = extrapolated * static_cast<double>(params.position_scale);
  const double last = static_cast<double>(params.n_rot - 1);
  const double low = std::clamp(std::floor(pair_of_rotations(params, yarn.beta_fast)), 0.0, last);
  const double high = std::clamp(std::ceil(pair_of_rotations(params, yarn.beta_slow)), 0.0, last);
  const double ramp =
      std::clamp((static_cast<double>(pair) - low) / std::max(0.001, high - low), 0.0, 1.0);
  const double keep = (1.0 - ramp) * static_cast<double>(yarn.ext_factor);
  return interpolated * (1.0 - keep) + extrapolated * keep;
}

}  // namespace

RopeTable::RopeTable(const RopeParams& params, const WeightTable& weights) {
  const float* divisors = params.freq_divisors ? f32_data(weights, *params.freq_divisors) : nullptr;
  for (std::int64_t pair = 0; pair < params.n_rot / 2; ++pair) {
    const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(params.n_rot);
    double frequency = std::pow(static_cast<double>(params.base), exponent);
    if (divisors != nullptr) {
      frequency /= static_cast<double>(divisors[pair]);
    }
    frequency = params.yarn ? yarn_frequency(params, frequency, pair)
                            : frequency * static_cast<double>(params.position_scale);
    frequencies.push_back(static_cast<float>(frequency));
  }
  if (params.yarn) {
    const auto& yarn = *params.yarn;
    const float growth =
        yarn.ext_factor != 0 ? 1.0f + 0.1f * std::log(1.0f / params.position_scale) : 1.0f;
    magnitude = yarn.magnitude > 0 ? yarn.magnitude : yarn.attn_factor * growth;
  }
}

Result<ValueDesc> Rope::infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                              std::int64_t) const {
  if (params.head_dim <= 0 || inputs[0].features % params.head_dim != 0) {
    return fail(ErrorCode::invalid_argument, "rope: {} features are not whole heads of {}",
                inputs[0].features, params.head_dim);
  }
  if (params.n_rot <= 0 || params.n_rot % 2 != 0 || params.n_rot > params.head_dim) {
    return fail(ErrorCode::invalid_argument,
                "rope: {} rotated dimensions, expected an even number up to {}", params.n_rot,
                params.head_dim);
  }
  if (params.freq_divisors) {
    HEARTH_TRY(expect_weight_shape(name, weights, *params.freq_divisors, Shape{params.n_rot / 2}));
    if (tensor(weights, *params.freq_divisors).dtype != DType::f32) {
      return fail(ErrorCode::invalid_file, "rope: tensor '{}' is not F32",
                  weights[index(*params.freq_divisors)].name);
    }
  }
  return inputs[0];
}

void Rope::run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const {
  const RopeTable table(params, context.weights);
  std::vector<float> cosines(table.frequencies.size());
  std::vector<float> sines(table.frequencies.size());
  for (std::int64_t row = 0; row < out.rows; ++row) {
    table.angles(context.step.positions[static_cast<std::size_t>(row)], cosines.data(),
                 sines.data());
    for (std::int64_t start = 0; start < out.features; start += params.head_dim) {
      rotate_head(params, cosines.data(), sines.data(), inputs[0].row(row) + start,
                  out.row(row) + start);
    }
  }
}

ValueId rope(GraphBuilder& g, ValueId x, const RopeParams& params) {
  return g.add(Rope{params}, {x});
}

}  // namespace hearth::graph
