#include "graph/ops/causal_conv.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::graph {
namespace {

constexpr std::int64_t channels = 5;
constexpr std::int64_t taps = 4;

StateCacheDesc one_layer(std::int64_t n_slots) {
  return {n_slots,
          {{.n_heads = 1,
            .key_dim = 4,
            .value_dim = 16,
            .conv_channels = channels,
            .conv_taps = taps}}};
}

class CausalConv : public testing::Test {
 protected:
  static constexpr std::int64_t n_rows = 9;

  CausalConv() : weights_(3) {
    op_.weight = weights_.add_uniform("conv", Shape{channels, taps}, -1, 1);
  }

  /// Rows [first, first + n) of x, as the next rows of the sequence in `slot`.
  Matrix run(HostStateCache& states, std::int32_t first, std::int64_t n, std::int32_t slot = 0) {
    OwnedStep step(n, first);
    step.state_slots = {slot};
    const auto begin = x_.data.begin() + first * channels;
    return run_op(op_, weights_.table(), {{n, channels, {begin, begin + n * channels}}}, step,
                  states)
        .value();
  }

  RandomWeights weights_;
  graph::CausalConv op_;
  Matrix x_ = random_matrix(n_rows, channels, 4);
};

TEST_F(CausalConv, IsSiluOfTheLastFourInputsOldestTapFirst) {
  HostStateCache states(one_layer(1));
  const Matrix y = run(states, 0, n_rows);
  const float* w = f32_data(weights_.table(), op_.weight);
  for (std::int64_t row = 0; row < n_rows; ++row) {
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      double sum = 0;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t from = row - taps + 1 + tap;
        sum += from < 0 ? 0.0
                        : static_cast<double>(w[channel * taps + tap]) *
                              static_cast<double>(x_.at(from, channel));
      }
      EXPECT_NEAR(y.at(row, channel), sum / (1 + std::exp(-sum)), 1e-6);
    }
  }
}

TEST_F(CausalConv, GivesTheSameBitsWhereverThePromptIsCut) {
  HostStateCache whole_states(one_layer(1));
  const Matrix whole = run(whole_states, 0, n_rows);
  for (std::int32_t cut = 1; cut < n_rows; ++cut) {  // also before the ring is full
    HostStateCache states(one_layer(1));
    auto parts = run(states, 0, cut).data;
    for (std::int32_t row = cut; row < n_rows; ++row) {
      const auto next = run(states, row, 1).data;
      parts.insert(parts.end(), next.begin(), next.end());
    }
    EXPECT_EQ(parts, whole.data) << "cut at " << cut;
  }
}

TEST_F(CausalConv, FindsNothingOfTheSlotsLastOwner) {
  HostStateCache states(one_layer(2));
  const Matrix first = run(states, 0, n_rows, 1);
  EXPECT_EQ(run(states, 0, n_rows, 1).data, first.data);
}

/// Rows 0 and 1 stay in slot 0; each row behind them has a slot of its own, so that one can go on
/// from any of them.
TEST_F(CausalConv, StatesAfterRowsGoToTheirTargets) {
  HostStateCache whole_states(one_layer(1));
  const Matrix whole = run(whole_states, 0, n_rows);
  HostStateCache states(one_layer(3));
  OwnedStep step(4);
  step.state_targets = {0, 0, 1, 2};
  const Matrix window{4, channels, {x_.data.begin(), x_.data.begin() + 4 * channels}};
  ASSERT_TRUE(run_op(op_, weights_.table(), {window}, step, states).has_value());
  for (const std::int32_t slot : {0, 1, 2}) {
    const Matrix rest = run(states, 2 + slot, 1, slot);
    EXPECT_EQ(rest.data, (std::vector<float>(whole.data.begin() + (2 + slot) * channels,
                                             whole.data.begin() + (3 + slot) * channels)))
        << "slot " << slot;
  }
}

TEST_F(CausalConv, RefusesWeightsOfAnotherShapeOrType) {
  HostStateCache states(one_layer(1));
  const auto refuse = [&](WeightId weight, std::string_view reason) {
    op_.weight = weight;
    const auto out = run_op(op_, weights_.table(), {x_}, OwnedStep(n_rows), states);
    ASSERT_FALSE(out.has_value());
    EXPECT_THAT(out.error().message, testing::HasSubstr(reason));
  };
  refuse(weights_.add_uniform("wide", Shape{channels + 1, taps}, -1, 1), "expected [5, 4]");
  refuse(weights_.add("halves", DType::f16, Shape{channels, taps}), "is F16, expected F32");
  refuse(weights_.add_uniform("short", Shape{channels, 1}, -1, 1), "1 taps");
}

}  // namespace
}  // namespace hearth::graph
