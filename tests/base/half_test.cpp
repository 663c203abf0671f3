#include "base/half.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace hearth {
namespace {

bool is_nan_pattern(std::uint16_t bits) {
  return (bits & 0x7c00u) == 0x7c00u && (bits & 0x3ffu) != 0;
}

TEST(Half, EveryValueSurvivesTheRoundTrip) {
  for (std::uint32_t i = 0; i <= 0xffffu; ++i) {
    const Half half{static_cast<std::uint16_t>(i)};
    if (is_nan_pattern(half.bits)) {
      EXPECT_TRUE(std::isnan(to_float(half)));
      EXPECT_TRUE(is_nan_pattern(to_half(to_float(half)).bits));
    } else {
      EXPECT_EQ(to_half(to_float(half)).bits, half.bits);
    }
  }
}

TEST(Half, SubnormalsAreExact) {
  EXPECT_EQ(to_float(Half{0x0001}), 0x1p-24f);
  EXPECT_EQ(to_float(Half{0x03ff}), 1023 * 0x1p-24f);
  EXPECT_EQ(to_float(Half{0x8001}), -0x1p-24f);
}

TEST(Half, RoundsToNearestEvenBetweenEveryPairOfNeighbours) {
  for (std::uint32_t i = 0; i < 0x7bffu; ++i) {
    const Half low{static_cast<std::uint16_t>(i)};
    const Half high{static_cast<std::uint16_t>(i + 1)};
    const float middle =
        (to_float(low) + to_float(high)) / 2;  // exact: one more bit than a half has
    EXPECT_EQ(to_half(middle).bits, (i % 2 == 0) ? low.bits : high.bits) << i;
    EXPECT_EQ(to_half(std::nextafter(middle, 0.0f)).bits, low.bits) << i;
    EXPECT_EQ(to_half(std::nextafter(middle, 1e9f)).bits, high.bits) << i;
  }
  EXPECT_EQ(to_half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00);
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNaN) {
  EXPECT_EQ(to_bfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(1.00390625f).bits, 0x3f80);  // halfway, even below
  EXPECT_EQ(to_bfloat16(1.01171875f).bits, 0x3f82);  // halfway, even above
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::nanf("")))));
  EXPECT_EQ(to_float(to_bfloat16(INFINITY)), INFINITY);
}

}  // namespace
}  // namespace hearth
