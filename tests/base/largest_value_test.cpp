#include "base/largest_value.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(LargestValue, IsTheFirstOfEqualOnesWhereverTheyLie) {
  for (const std::size_t n : {1u, 15u, 16u, 1024u, 1025u, 5000u}) {
    for (const std::size_t first : {std::size_t{0}, n / 2, n - 1}) {
      std::vector<float> values(n, -3.0f);
      values[first] = 2.0f;
      values.back() = 2.0f;
      const LargestValue found = largest_value(values);
      EXPECT_TRUE(found.is_number());
      EXPECT_EQ(found.value, 2.0f);
      EXPECT_EQ(found.index, first) << n;
    }
  }
}

TEST(LargestValue, TakesZeroesOfBothSignsForEqual) {
  for (const float first : {-0.0f, 0.0f}) {
    std::vector<float> values(40, -1.0f);
    values[7] = first;
    values[30] = -first;
    EXPECT_EQ(largest_value(values).index, 7u);
    EXPECT_EQ(std::signbit(largest_value(values).value), std::signbit(first));
  }
}

TEST(LargestValue, IsTheFirstThatIsNoNumberWhereverItLies) {
  for (const float wrong : {infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {0u, 1023u, 1024u, 2059u}) {
      std::vector<float> values(2060, 1.0f);
      values.back() = infinity;
      values[at] = wrong;
      const LargestValue found = largest_value(values);
      EXPECT_FALSE(found.is_number()) << at;
      EXPECT_EQ(found.index, at);
      EXPECT_EQ(std::isnan(found.value), std::isnan(wrong));
    }
  }
}

TEST(LargestValue, LetsMinusInfinityPass) {
  std::vector<float> values(100, -infinity);
  EXPECT_TRUE(largest_value(values).is_number());
  EXPECT_EQ(largest_value(values).value, -infinity);
  EXPECT_EQ(largest_value(values).index, 0u);
  values[60] = -1e30f;
  EXPECT_EQ(largest_value(values).index, 60u);
}

TEST(LargestValue, OfNoneIsMinusInfinity) {
  EXPECT_EQ(largest_value({}).value, -infinity);
  EXPECT_EQ(largest_value({}).index, 0u);
}

}  // namespace
}  // namespace hearth
