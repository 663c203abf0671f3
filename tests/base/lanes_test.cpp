#include "base/lanes.h"

#include <vector>

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(SumLanes, AddsByAHalvingTree) {
  // 2^24 swallows a single 1, so that only the right order keeps the ones.
  Lanes lanes{};
  lanes[0] = 0x1p24f;
  lanes[8] = 1.0f;  // first step: rounds away (to even)
  lanes[4] = 1.0f;
  lanes[12] = 1.0f;  // first step: 1 + 1 = 2, which survives the second
  EXPECT_EQ(sum_lanes(lanes), 0x1p24f + 2.0f);
}

TEST(SumOfSquares, PutsElementIIntoLaneIModSixteen) {
  // Elements 0 and 16 share a lane: 2^24 + 1 rounds to 2^24.
  std::vector<float> x(25, 0.0f);
  x[0] = 0x1p12f;
  x[16] = 1.0f;
  EXPECT_EQ(sum_of_squares(x.data(), x.size()), 0x1p24f);
  // Elements 8 and 24 share another: their 1 + 1 survives when lanes 0 and 8 are added.
  x[8] = x[24] = 1.0f;
  EXPECT_EQ(sum_of_squares(x.data(), x.size()), 0x1p24f + 2.0f);
}

TEST(SumOfSquares, TakesAnyLength) {
  const std::vector<float> x(100, 2.0f);
  for (const std::size_t n : {0u, 1u, 15u, 16u, 17u, 33u, 100u}) {
    EXPECT_EQ(sum_of_squares(x.data(), n), 4.0f * static_cast<float>(n));
  }
}

}  // namespace
}  // namespace hearth
