#include "graph/ops/router.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"

namespace hearth::graph {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Matrix route(const Matrix& logits, std::int64_t n_used) {
  return run_op(Router{n_used}, {}, {logits}).value();
}

TEST(Router, TakesTheMostProbableExpertsAndDividesByTheirSum) {
  const Matrix logits{1, 5, {0.5f, 2.0f, -1.0f, 3.0f, 1.0f}};
  const auto routing = route(logits, 3);
  EXPECT_THAT(std::vector(routing.data.begin(), routing.data.begin() + 3),
              testing::ElementsAre(3, 1, 4));
  const double sum = std::exp(3.0) + std::exp(2.0) + std::exp(1.0);
  EXPECT_NEAR(routing.at(0, 3), std::exp(3.0) / sum, 1e-6);
  EXPECT_NEAR(routing.at(0, 4), std::exp(2.0) / sum, 1e-6);
  EXPECT_NEAR(routing.at(0, 5), std::exp(1.0) / sum, 1e-6);
}

TEST(Router, GivesEqualExpertsToTheLowestNumbers) {
  const auto all_equal = route({1, 40, std::vector<float>(40, 0.25f)}, 4);
  EXPECT_THAT(all_equal.data, testing::ElementsAre(0, 1, 2, 3, 0.25f, 0.25f, 0.25f, 0.25f));
  const auto two_equal = route({1, 4, {1.0f, 5.0f, 1.0f, 5.0f}}, 3);
  EXPECT_THAT(std::vector(two_equal.data.begin(), two_equal.data.begin() + 3),
              testing::ElementsAre(1, 3, 0));
}

TEST(Router, LetsANanReachTheWeightsAndChoosesKnownExperts) {
  for (const std::size_t place : {0u, 2u, 3u}) {
    Matrix logits = random_matrix(2, 4, 1);
    logits.data[place] = nan;
    const auto routing = route(logits, 3);
    EXPECT_THAT(std::vector(routing.data.begin(), routing.data.begin() + 3),
                testing::ElementsAre(0, 1, 2));
    EXPECT_TRUE(std::isnan(routing.at(0, 3)));
    EXPECT_FALSE(std::isnan(routing.at(1, 3)));  // the row beside it
  }
}

TEST(Router, MayUseEveryExpert) {
  const Matrix logits = random_matrix(3, 7, 2);
  const auto routing = route(logits, 7);
  for (std::int64_t row = 0; row < 3; ++row) {
    const auto* weights = routing.data.data() + row * 14 + 7;
    EXPECT_NEAR(std::accumulate(weights, weights + 7, 0.0), 1.0, 1e-6);
    EXPECT_TRUE(std::is_sorted(weights, weights + 7, std::greater<>()));
  }
}

TEST(Router, RefusesMoreExpertsThanThereAre) {
  const auto out = run_op(Router{5}, {}, {random_matrix(1, 4, 1)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message, testing::HasSubstr("router: 5 of 4 experts"));
}

}  // namespace
}  // namespace hearth::graph
