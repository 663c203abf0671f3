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

TEST(DotLanes, PutsElementIIntoLaneIModSixteen) {
  // Elements 0 and 16 share a lane: 2^24 + 1 rounds to 2^24, and the -2^24 of lane 8 leaves 0.
  std::vector<float> a(25, 0.0f);
  const std::vector<float> ones(25, 1.0f);
  a[0] = 0x1p24f;
  a[16] = 1.0f;
  a[24] = -0x1p24f;  // lane 8
  EXPECT_EQ(dot_lanes(a.data(), ones.data(), a.size()), 0.0f);
  a[16] = 0.0f;
  a[8] = 1.0f;  // shares lane 8 with -2^24: -2^24 + 1 is exact, and so is the sum
  EXPECT_EQ(dot_lanes(a.data(), ones.data(), a.size()), 1.0f);
}

TEST(SumOfSquares, EqualsTheDotOfAVectorWithItself) {
  for (const std::size_t n : {0u, 1u, 15u, 16u, 17u, 33u, 100u}) {
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = static_cast<float>(i) * 0.37f - 3.0f;
    }
    EXPECT_EQ(sum_of_squares(x.data(), n), dot_lanes(x.data(), x.data(), n));
  }
}

}  // namespace
}  // namespace hearth
