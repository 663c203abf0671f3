#include "base/math.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

#include "tests/base/exp_error.h"

namespace hearth {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(CanonicalExp, IsWithinTwoUlpOfTheExactValue) {
  EXPECT_LE(worst_exp_error(97), 2.0);
  EXPECT_LE(ulps(canonical_exp(88.7f), std::exp(static_cast<double>(88.7f))), 2.0);
  EXPECT_LE(ulps(canonical_exp(-87.3f), std::exp(static_cast<double>(-87.3f))), 2.0);
}

TEST(CanonicalExp, IsOneAtZeroAndClampsItsArgument) {
  EXPECT_EQ(canonical_exp(0.0f), 1.0f);
  EXPECT_EQ(canonical_exp(-0.0f), 1.0f);
  EXPECT_EQ(canonical_exp(89.0f), canonical_exp(88.7f));
  EXPECT_EQ(canonical_exp(infinity), canonical_exp(88.7f));
  EXPECT_EQ(canonical_exp(-100.0f), canonical_exp(-87.3f));
  EXPECT_EQ(canonical_exp(-infinity), canonical_exp(-87.3f));
  EXPECT_TRUE(std::isnormal(canonical_exp(infinity)));
  EXPECT_TRUE(std::isnormal(canonical_exp(-infinity)));
}

TEST(CanonicalFunctions, KeepANan) {
  EXPECT_TRUE(std::isnan(canonical_exp(nan)));
  EXPECT_TRUE(std::isnan(canonical_silu(nan)));
  EXPECT_TRUE(std::isnan(canonical_gelu_tanh(nan)));
  EXPECT_TRUE(std::isnan(canonical_tanh(nan)));
  EXPECT_TRUE(std::isnan(canonical_sigmoid(nan)));
  EXPECT_TRUE(std::isnan(canonical_softplus(nan)));
  EXPECT_TRUE(std::isnan(canonical_sincos(std::numeric_limits<double>::quiet_NaN()).sin));
}

// Derivation of the bounds: exp within 2 ulp, then one addition and one division of half an ulp
// each; the argument of the tanh form adds its own rounding, multiplied by |u| <= 10.
TEST(CanonicalFunctions, AgreeWithDoublePrecision) {
  for (int i = -20000; i <= 20000; ++i) {
    const float x = static_cast<float>(i) * 5e-4f;
    const auto exact = static_cast<double>(x);
    const double silu = exact / (1.0 + std::exp(-exact));
    EXPECT_LE(ulps(canonical_silu(x), silu), 4.0) << x;
    EXPECT_NEAR(static_cast<double>(canonical_tanh(x)), std::tanh(exact), 5 * 0x1p-24) << x;
    const double u = std::sqrt(2.0 / std::numbers::pi) * (exact + 0.044715 * exact * exact * exact);
    const double gelu = exact / (1.0 + std::exp(-2.0 * u));
    EXPECT_NEAR(static_cast<double>(canonical_gelu_tanh(x)), gelu,
                std::abs(gelu) * 0x1p-23 * (4.0 + 4.0 * std::abs(u)) + 1e-37)
        << x;
  }
}

TEST(CanonicalSoftplus, IsWithinTwoUlpFromTheSmallestExponentialToTheIdentity) {
  for (float x = -87.0f; x < 25.0f; x += 0.00037f) {
    const double exact = std::log1p(std::exp(static_cast<double>(x)));
    ASSERT_LE(ulps(canonical_softplus(x), exact), 2.0) << x;
  }
  EXPECT_EQ(canonical_softplus(infinity), infinity);
  EXPECT_EQ(canonical_softplus(21.5f), 21.5f);
  EXPECT_GT(canonical_softplus(-infinity), 0.0f);
}

TEST(CanonicalSinCos, IsWithinOneUlpOfDoublePrecisionForPositionsUpToAMillion) {
  const double frequencies[] = {1.0, 0.7498942, 0.1, 0.031622777, 1e-3, 2.5e-6};
  for (const double frequency : frequencies) {
    for (int position = 0; position <= 1'000'000; position += 61) {
      const double angle = position * static_cast<double>(static_cast<float>(frequency));
      const SinCos actual = canonical_sincos(angle);
      ASSERT_LE(ulps(actual.sin, std::sin(angle)), 1.0) << "sin " << angle;
      ASSERT_LE(ulps(actual.cos, std::cos(angle)), 1.0) << "cos " << angle;
    }
  }
}

TEST(CanonicalSinCos, FollowsTheQuadrantsOfNegativeAngles) {
  for (double angle = -20.0; angle < 20.0; angle += 0.01) {
    const SinCos actual = canonical_sincos(angle);
    ASSERT_NEAR(static_cast<double>(actual.sin), std::sin(angle), 1e-7) << angle;
    ASSERT_NEAR(static_cast<double>(actual.cos), std::cos(angle), 1e-7) << angle;
  }
}

}  // namespace
}  // namespace hearth
