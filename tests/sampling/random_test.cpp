#include "sampling/random.h"

#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "sampling/philox.h"

namespace hearth::sampling {
namespace {

// The published known answers of Random123 (file kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32_10({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, IsTheTop53BitsOfTheFirstTwoWords) {
  const double expected = std::floor((0x6627e8d5 * 0x1p32 + 0xe169c58d) / 0x1p11) * 0x1p-53;
  EXPECT_EQ(uniform(0, 0, Purpose::token), expected);
}

TEST(Uniform, DependsOnEveryBitOfSeedAndPosition) {
  std::set<double> seen{uniform(0, 0, Purpose::token)};
  for (int bit = 0; bit < 63; ++bit) {
    seen.insert(uniform(0, std::int64_t{1} << bit, Purpose::token));
    seen.insert(uniform(std::uint64_t{1} << bit, 0, Purpose::token));
  }
  seen.insert(uniform(std::uint64_t{1} << 63, 0, Purpose::token));
  EXPECT_EQ(seen.size(), 1u + 63u + 64u);
}

TEST(Uniform, FillsTheUnitIntervalEvenlyAcrossPositionsAndAcrossSeeds) {
  constexpr int n_bins = 50;
  constexpr int n_draws = 50000;
  std::array<int, n_bins> by_position{};
  std::array<int, n_bins> by_seed{};
  for (int i = 0; i < n_draws; ++i) {
    ++by_position.at(static_cast<std::size_t>(uniform(7, i, Purpose::token) * n_bins));
    ++by_seed.at(static_cast<std::size_t>(
        uniform(static_cast<std::uint64_t>(i), 7, Purpose::token) * n_bins));
  }
  const auto chi_square = [](const std::array<int, n_bins>& counts) {
    constexpr double expected = static_cast<double>(n_draws) / n_bins;
    double sum = 0;
    for (const int count : counts) {
      sum += (count - expected) * (count - expected) / expected;
    }
    return sum;
  };
  constexpr double quantile_9999 = 95.0;  // 49 degrees of freedom
  EXPECT_LT(chi_square(by_position), quantile_9999);
  EXPECT_LT(chi_square(by_seed), quantile_9999);
}

TEST(RandomSeed, DiffersFromCallToCall) {
  EXPECT_NE(random_seed(), random_seed());
}

}  // namespace
}  // namespace hearth::sampling
