#include "quantiles.h"

#include <vector>

#include <gtest/gtest.h>

namespace hearth::app {
namespace {

TEST(Quantiles, LieBetweenSortedSamples) {
  const auto q = quantiles_of(std::vector<double>{5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(q.p10, 1.4);
  EXPECT_DOUBLE_EQ(q.median, 3);
  EXPECT_DOUBLE_EQ(q.p90, 4.6);
}

TEST(Quantiles, OfAnEvenNumberTakeTheMiddle) {
  EXPECT_DOUBLE_EQ(quantiles_of(std::vector<double>{1, 2, 10, 20}).median, 6);
}

TEST(Quantiles, OfOneSampleAreTheSample) {
  const auto q = quantiles_of(std::vector<double>{7});
  EXPECT_EQ(q.p10, 7);
  EXPECT_EQ(q.median, 7);
  EXPECT_EQ(q.p90, 7);
}

}  // namespace
}  // namespace hearth::app
