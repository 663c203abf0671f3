#include "quant/activation.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hearth::quant {
namespace {

struct Quantized {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<std::int16_t> sums;
};

Quantized quantize(const std::vector<float>& x, int block) {
  Quantized q{.codes = std::vector<std::int8_t>(x.size()),
              .scales = std::vector<float>(x.size() / static_cast<std::size_t>(block)),
              .sums = std::vector<std::int16_t>(x.size() / activation_sum_group)};
  quantize_activations(x, block, {.codes = q.codes, .scales = q.scales, .sums = q.sums});
  return q;
}

std::vector<float> normal_values(std::size_t n, float deviation) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> x(n);
  for (float& value : x) {
    value = normal(random);
  }
  return x;
}

/// A block of 32 zeros except for its first values.
std::vector<float> block_of(std::initializer_list<float> values) {
  std::vector<float> x(values);
  x.resize(32);
  return x;
}

class Activations : public testing::TestWithParam<int> {};  // the block: 32 or 256

TEST_P(Activations, AreScaledByTheLargestMagnitudeAndRoundedToNearestEven) {
  const int block = GetParam();
  const auto block_size = static_cast<std::size_t>(block);
  const auto x = normal_values(4096, 3.0f);
  const Quantized q = quantize(x, block);
  for (std::size_t b = 0; b < x.size() / block_size; ++b) {
    float largest = 0;
    for (std::size_t i = b * block_size; i < (b + 1) * block_size; ++i) {
      largest = std::max(largest, std::fabs(x[i]));
    }
    EXPECT_EQ(q.scales[b], largest / 127.0f);
    const float inverse = 127.0f / largest;
    for (std::size_t i = b * block_size; i < (b + 1) * block_size; ++i) {
      EXPECT_EQ(static_cast<float>(q.codes[i]), std::nearbyint(x[i] * inverse)) << i;
    }
  }
}

TEST_P(Activations, KeepTheSumsOfSixteenCodes) {
  const Quantized q = quantize(normal_values(1024, 1.0f), GetParam());
  for (std::size_t group = 0; group < q.sums.size(); ++group) {
    const auto first = q.codes.begin() + static_cast<std::ptrdiff_t>(group * 16);
    EXPECT_EQ(q.sums[group], std::accumulate(first, first + 16, 0));
  }
}

TEST_P(Activations, OfAnyMagnitudeHaveCodesWithin127) {
  for (int exponent = -119; exponent <= 127; ++exponent) {
    auto x = normal_values(256, 1.0f);
    float largest = 0;
    for (float& value : x) {
      largest = std::max(largest, std::fabs(value));
    }
    for (float& value : x) {
      value = std::ldexp(value / largest, exponent);
    }
    const Quantized q = quantize(x, GetParam());
    int largest_code = 0;
    for (const std::int8_t code : q.codes) {
      largest_code = std::max(largest_code, std::abs(static_cast<int>(code)));
    }
    EXPECT_EQ(largest_code, 127) << "2^" << exponent;
  }
}

INSTANTIATE_TEST_SUITE_P(BothBlocks, Activations, testing::Values(32, 256),
                         testing::PrintToStringParamName());

TEST(Activation, TiesGoToTheEvenCode) {
  const Quantized q = quantize(
      block_of({127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 125.5f, 126.5f, -126.5f}), 32);
  EXPECT_EQ(q.scales[0], 1.0f);
  const std::vector<int> codes(q.codes.begin(), q.codes.begin() + 10);
  EXPECT_EQ(codes, (std::vector<int>{127, 0, 2, 2, 0, -2, -2, 126, 126, -126}));
}

TEST(Activation, ZerosHaveScaleZero) {
  const Quantized q = quantize(block_of({0.0f, -0.0f}), 32);
  EXPECT_EQ(q.scales[0], 0.0f);
  EXPECT_EQ(q.codes, std::vector<std::int8_t>(32, 0));
}

TEST(Activation, MagnitudesWhoseInverseOverflowsCountAsZero) {
  const float below = std::nextafter(smallest_activation, 0.0f);
  EXPECT_EQ(quantize(block_of({below, -below, 1e-45f}), 32).scales[0], 0.0f);
  const Quantized q = quantize(block_of({smallest_activation, below / 2}), 32);
  EXPECT_EQ(q.scales[0], smallest_activation / 127.0f);
  EXPECT_EQ(q.codes[0], 127);
  EXPECT_EQ(q.codes[1], 63);
}

TEST(Activation, LargestFloatsKeepAFiniteScale) {
  const float largest = std::numeric_limits<float>::max();
  const Quantized q = quantize(block_of({largest, -largest, largest / 2}), 32);
  EXPECT_EQ(q.scales[0], largest / 127.0f);
  EXPECT_EQ(q.codes[0], 127);
  EXPECT_EQ(q.codes[1], -127);
  EXPECT_EQ(q.codes[2], 64);  // 63.5, a tie
}

TEST(Activation, NaNOrInfinityMakesTheScaleOfItsBlockNaN) {
  for (const float fault : {std::nanf(""), -std::nanf(""), INFINITY, -INFINITY}) {
    auto x = normal_values(96, 1.0f);
    x[40] = fault;
    const Quantized q = quantize(x, 32);
    EXPECT_FALSE(std::isnan(q.scales[0]));
    EXPECT_TRUE(std::isnan(q.scales[1]));
    EXPECT_FALSE(std::isnan(q.scales[2]));
    for (std::size_t i = 32; i < 64; ++i) {
      EXPECT_EQ(q.codes[i], 0);
    }
    EXPECT_EQ(q.sums[2], 0);
    EXPECT_EQ(q.sums[3], 0);
  }
}

}  // namespace
}  // namespace hearth::quant
