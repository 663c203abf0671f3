#include "graph/ops/rms_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::graph {
namespace {

constexpr double eps = 1e-5;

/// The definition in double precision, for the runs of `n` values that make up x.
void expect_norm_of_runs(const Matrix& x, const float* weight, std::int64_t n, const Matrix& out) {
  for (std::size_t start = 0; start < x.data.size(); start += static_cast<std::size_t>(n)) {
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = x.data[start + static_cast<std::size_t>(i)];
      squares += value * value;
    }
    const double root = std::sqrt(squares / static_cast<double>(n) + eps);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = start + static_cast<std::size_t>(i);
      const double expected = x.data[at] / root * static_cast<double>(weight[i]);
      EXPECT_NEAR(out.data[at], expected, 1e-6 * std::abs(expected) + 1e-12);
    }
  }
}

TEST(RmsNorm, NormalisesWholeRowsOfAnyLength) {
  for (const std::int64_t n : {1, 7, 16, 100}) {
    for (const std::int64_t rows : {1, 3}) {
      RandomWeights weights(2);
      const WeightId weight = weights.add_uniform("norm", {n}, 0.5f, 1.5f);
      const Matrix x = random_matrix(rows, n, 3);
      const auto out = run_op(RmsNorm{weight, 1e-5f}, weights.table(), {x}).value();
      expect_norm_of_runs(x, f32_data(weights.table(), weight), n, out);
    }
  }
}

TEST(RmsNorm, NormalisesEachHeadWhenTheWeightIsAsLongAsAHead) {
  RandomWeights weights(2);
  const WeightId weight = weights.add_uniform("q_norm", {12}, 0.5f, 1.5f);
  const Matrix x = random_matrix(4, 3 * 12, 4);
  const auto out = run_op(RmsNorm{weight, 1e-5f}, weights.table(), {x}).value();
  expect_norm_of_runs(x, f32_data(weights.table(), weight), 12, out);
}

TEST(RmsNorm, RefusesAWeightWhoseLengthDoesNotDivideTheRow) {
  RandomWeights weights(2);
  const WeightId weight = weights.add_uniform("blk.0.attn_norm.weight", {10}, 0, 1);
  const auto out = run_op(RmsNorm{weight, 1e-5f}, weights.table(), {random_matrix(1, 36, 4)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message,
              testing::AllOf(testing::HasSubstr("'blk.0.attn_norm.weight'"),
                             testing::HasSubstr("[10]"), testing::HasSubstr("divides 36")));
}

TEST(RmsNorm, RefusesAWeightThatIsNotF32) {
  RandomWeights weights(2);
  const WeightId weight = weights.add("norm", DType::f16, {36});
  const auto out = run_op(RmsNorm{weight, 1e-5f}, weights.table(), {random_matrix(1, 36, 4)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message, testing::HasSubstr("F16"));
}

}  // namespace
}  // namespace hearth::graph
