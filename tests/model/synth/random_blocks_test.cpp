#include "model/synth/random_blocks.h"

#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "model/synth/mixtures.h"
#include "quant/registry.h"

namespace hearth::model {
namespace {

constexpr std::size_t n_weights = 1 << 16;

std::vector<std::byte> make(DType dtype, std::uint64_t key, float deviation) {
  std::vector<std::byte> blocks(static_cast<std::size_t>(quant::row_bytes(dtype, n_weights)));
  RandomBlocks(dtype).fill(key, deviation, blocks);
  return blocks;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

/// NaN when a weight is no finite number.
Moments moments_of(DType dtype, const std::vector<std::byte>& blocks) {
  std::vector<float> weights(n_weights);
  quant::decode(dtype, blocks, weights);
  double sum = 0;
  double squares = 0;
  for (const double weight : weights) {
    sum += weight;
    squares += weight * weight;
  }
  const double mean = sum / n_weights;
  return {mean, std::sqrt(squares / n_weights - mean * mean)};
}

std::set<DType> types_of_all_mixtures() {
  std::set<DType> types;
  for (const auto& mixture : all_mixtures()) {
    types.insert({mixture.base, mixture.head});
    for (const auto& rule : mixture.rules) {
      if (rule.applies != nullptr) {
        types.insert(rule.dtype);
      }
    }
  }
  return types;
}

TEST(RandomBlocks, CanBeMadeForEveryTypeOfTheMixtures) {
  for (const DType dtype : types_of_all_mixtures()) {
    EXPECT_TRUE(RandomBlocks::can_make(dtype)) << quant::name(dtype);
  }
  EXPECT_FALSE(RandomBlocks::can_make(DType::i32));
}

TEST(RandomBlocks, HaveTheDeviationThatWasAskedFor) {
  for (const DType dtype : types_of_all_mixtures()) {
    // The scales of MXFP4 are powers of two, the smallest ones of NVFP4 multiples of 2^-10.
    const auto name = quant::name(dtype);
    const double tolerance = name == "MXFP4" || name == "NVFP4" ? 0.2 : 0.05;
    for (const int row_length : {256, 2560, 14336}) {
      const double wanted = 1 / std::sqrt(row_length);
      const auto found = moments_of(dtype, make(dtype, 7, static_cast<float>(wanted)));
      EXPECT_NEAR(found.deviation, wanted, tolerance * wanted) << name << ", " << row_length;
      EXPECT_NEAR(found.mean, 0, 0.05 * wanted) << name << ", " << row_length;
    }
  }
}

TEST(RandomBlocks, AreAFunctionOfTheKey) {
  for (const DType dtype : types_of_all_mixtures()) {
    EXPECT_EQ(make(dtype, 1, 0.01f), make(dtype, 1, 0.01f)) << quant::name(dtype);
    EXPECT_NE(make(dtype, 1, 0.01f), make(dtype, 2, 0.01f)) << quant::name(dtype);
  }
}

TEST(RandomBlocks, ABeginningDoesNotDependOnWhatFollows) {
  const auto whole = make(DType::f16, 3, 0.01f);
  std::vector<std::byte> start(2 * 13);  // also not a whole number of random words
  RandomBlocks(DType::f16).fill(3, 0.01f, start);
  EXPECT_TRUE(std::equal(start.begin(), start.end(), whole.begin()));
}

TEST(MixBits, GivesThePublishedNumbersOfSplitMix64) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
  EXPECT_EQ(mix_bits(1234567 + golden), 6457827717110365317u);
  EXPECT_EQ(mix_bits(1234567 + 2 * golden), 3203168211198807973u);
}

}  // namespace
}  // namespace hearth::model
