#include "graph/ops/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::graph {
namespace {

/// Angle per position of pair j and the factor on the pair, in double precision, from the papers.
struct Turn {
  double frequency;
  double magnitude;
};

Turn plain_turn(const RopeParams& params, std::int64_t j) {
  const double exponent = static_cast<double>(2 * j) / static_cast<double>(params.n_rot);
  return {1.0 / std::pow(params.base, exponent), 1.0};
}

/// YaRN: the wavelength 2 pi / frequency compared with the original context decides between
/// interpolation (few turns) and extrapolation (many).
Turn yarn_turn(const RopeParams& params, std::int64_t j) {
  const auto& yarn = *params.yarn;
  const double plain = plain_turn(params, j).frequency;
  const auto pair_with_turns = [&](double turns) {
    // base^(-2 pair / n_rot) * context = 2 pi turns, solved for the pair
    return static_cast<double>(params.n_rot) / 2.0 *
           std::log(yarn.original_context / (2.0 * std::numbers::pi * turns)) /
           std::log(params.base);
  };
  const double low = std::max(0.0, std::floor(pair_with_turns(yarn.beta_fast)));
  const double high =
      std::min(static_cast<double>(params.n_rot - 1), std::ceil(pair_with_turns(yarn.beta_slow)));
  const double ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
  const double scale = params.position_scale;
  return {plain * scale * ramp + plain * (1.0 - ramp),
          yarn.attn_factor * (1.0 + 0.1 * std::log(1.0 / scale))};
}

template <class TurnOf>
void expect_rotated(const RopeParams& params, const Matrix& x, const OwnedStep& step,
                    const Matrix& out, TurnOf turn_of) {
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t head = 0; head < x.features; head += params.head_dim) {
      for (std::int64_t j = 0; j < params.n_rot / 2; ++j) {
        const bool adjacent = params.pairing == RopePairing::adjacent;
        const std::int64_t first = head + (adjacent ? 2 * j : j);
        const std::int64_t second = head + (adjacent ? 2 * j + 1 : j + params.n_rot / 2);
        const Turn turn = turn_of(j);
        const double position = step.positions[static_cast<std::size_t>(row)];
        const double angle = position * turn.frequency;
        const double a = x.at(row, first);
        const double b = x.at(row, second);
        // Frequencies are f32: half an ulp of angle at this position, plus rounding of the result.
        const double tolerance = 2.0 * (std::abs(angle) * 0x1p-24 + 4 * 0x1p-24) * turn.magnitude;
        EXPECT_NEAR(out.at(row, first),
                    turn.magnitude * (a * std::cos(angle) - b * std::sin(angle)), tolerance);
        EXPECT_NEAR(out.at(row, second),
                    turn.magnitude * (a * std::sin(angle) + b * std::cos(angle)), tolerance);
      }
      for (std::int64_t i = params.n_rot; i < params.head_dim; ++i) {
        EXPECT_EQ(out.at(row, head + i), x.at(row, head + i));
      }
    }
  }
}

class RopePairings : public testing::TestWithParam<RopePairing> {};

TEST_P(RopePairings, RotatesEveryHeadByItsPosition) {
  for (const std::int64_t n_rot : {16, 10}) {
    const RopeParams params{.pairing = GetParam(), .head_dim = 16, .n_rot = n_rot, .base = 500.0f};
    const Matrix x = random_matrix(4, 3 * 16, 5);
    const OwnedStep step(4, 1000);
    const auto out = run_op(Rope{params}, {}, {x}, step).value();
    expect_rotated(params, x, step, out, [&](std::int64_t j) { return plain_turn(params, j); });
  }
}

INSTANTIATE_TEST_SUITE_P(Rope, RopePairings,
                         testing::Values(RopePairing::adjacent, RopePairing::half_split),
                         [](const auto& each) {
                           return each.param == RopePairing::adjacent ? "Adjacent" : "HalfSplit";
                         });

TEST(Rope, ScalesPositionsLinearly) {
  const RopeParams params{
      .pairing = RopePairing::half_split, .head_dim = 8, .n_rot = 8, .position_scale = 0.125f};
  const Matrix x = random_matrix(2, 8, 5);
  const OwnedStep step(2, 4000);
  const auto out = run_op(Rope{params}, {}, {x}, step).value();
  expect_rotated(params, x, step, out,
                 [&](std::int64_t j) { return Turn{plain_turn(params, j).frequency / 8.0, 1.0}; });
}

TEST(Rope, DividesFrequenciesByAWeight) {
  RandomWeights weights(6);
  const WeightId divisors = weights.add_uniform("rope_freqs.weight", {4}, 1, 8);
  const RopeParams params{.pairing = RopePairing::adjacent,
                          .head_dim = 8,
                          .n_rot = 8,
                          .base = 5e5f,
                          .freq_divisors = divisors};
  const Matrix x = random_matrix(2, 8, 5);
  const OwnedStep step(2, 100);
  const auto out = run_op(Rope{params}, weights.table(), {x}, step).value();
  expect_rotated(params, x, step, out, [&](std::int64_t j) {
    return Turn{plain_turn(params, j).frequency /
                    static_cast<double>(f32_data(weights.table(), divisors)[j]),
                1.0};
  });
}

TEST(Rope, InterpolatesSlowPairsWithYarn) {
  const RopeParams params{.pairing = RopePairing::half_split,
                          .head_dim = 64,
                          .n_rot = 64,
                          .position_scale = 0.25f,
                          .yarn = Yarn{.attn_factor = 0.9f, .original_context = 4096}};
  const Matrix x = random_matrix(2, 64, 5);
  const OwnedStep step(2, 9000);
  const auto out = run_op(Rope{params}, {}, {x}, step).value();
  expect_rotated(params, x, step, out, [&](std::int64_t j) { return yarn_turn(params, j); });
  // The case is only worth something if both ends of the ramp occur.
  EXPECT_EQ(yarn_turn(params, 0).frequency, plain_turn(params, 0).frequency);
  EXPECT_EQ(yarn_turn(params, 31).frequency, plain_turn(params, 31).frequency * 0.25);
}

TEST(Rope, TakesAGivenYarnMagnitude) {
  RopeParams params{.pairing = RopePairing::adjacent,
                    .head_dim = 8,
                    .n_rot = 8,
                    .position_scale = 0.25f,
                    .yarn = Yarn{.attn_factor = 0.9f, .magnitude = 1.5f, .original_context = 64}};
  EXPECT_EQ(RopeTable(params, {}).magnitude, 1.5f);
  params.yarn->magnitude = 0;
  EXPECT_FLOAT_EQ(RopeTable(params, {}).magnitude, 0.9f * (1.0f + 0.1f * std::log(4.0f)));
}

TEST(Rope, RefusesRotatedDimensionsThatAreOddOrMoreThanAHead) {
  for (const std::int64_t n_rot : {0, 7, 10}) {
    const Rope op{{.head_dim = 8, .n_rot = n_rot}};
    const auto out = run_op(op, {}, {random_matrix(1, 16, 5)});
    ASSERT_FALSE(out.has_value());
    EXPECT_THAT(out.error().message, testing::HasSubstr("even number up to 8"));
  }
}

TEST(Rope, RefusesFeaturesThatAreNotWholeHeads) {
  const auto out = run_op(Rope{{.head_dim = 8, .n_rot = 8}}, {}, {random_matrix(1, 20, 5)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message, testing::HasSubstr("20 features are not whole heads of 8"));
}

TEST(Rope, RefusesDivisorsOfTheWrongShapeOrType) {
  RandomWeights weights(6);
  const WeightId longer = weights.add_uniform("rope_freqs.weight", {5}, 1, 8);
  const WeightId half = weights.add("rope_half.weight", DType::f16, {4});
  const auto wrong_shape = run_op(Rope{{.head_dim = 8, .n_rot = 8, .freq_divisors = longer}},
                                  weights.table(), {random_matrix(1, 8, 5)});
  ASSERT_FALSE(wrong_shape.has_value());
  EXPECT_THAT(wrong_shape.error().message, testing::HasSubstr("'rope_freqs.weight'"));
  const auto wrong_type = run_op(Rope{{.head_dim = 8, .n_rot = 8, .freq_divisors = half}},
                                 weights.table(), {random_matrix(1, 8, 5)});
  ASSERT_FALSE(wrong_type.has_value());
  EXPECT_THAT(wrong_type.error().message, testing::HasSubstr("'rope_half.weight' is not F32"));
}

}  // namespace
}  // namespace hearth::graph
