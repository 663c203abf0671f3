#include "quant/integer_form.h"

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "quant/activation.h"
#include "quant/all_types.h"
#include "quant/registry.h"
#include "tests/quant/random_blocks.h"

namespace hearth::quant {
namespace {

constexpr double rounding = 0x1p-24;  // largest relative error of one rounding to f32

/// A type with integer form, its sizes as indices.
struct IntegerType {
  const QuantInfo& info;
  const IntegerLayout& layout;
  std::size_t block_weights = static_cast<std::size_t>(info.block_weights);
  std::size_t block_bytes = static_cast<std::size_t>(info.block_bytes);
  std::size_t unit = static_cast<std::size_t>(layout.unit);
  std::size_t activation_block = static_cast<std::size_t>(layout.activation_block);

  [[nodiscard]] int code(const IntegerBlock& integers, std::size_t i) const {
    return layout.code_zero + integers.codes[i];
  }
};

std::vector<IntegerType> integer_types() {
  std::vector<IntegerType> types;
  for (const QuantInfo& info : all()) {
    if (const IntegerLayout* layout = integer_layout(info.dtype)) {
      types.push_back({.info = info, .layout = *layout});
    }
  }
  return types;
}

IntegerBlock integers_of(const IntegerType& type, Bytes blocks, std::size_t block) {
  IntegerBlock integers;
  to_integers(type.info.dtype, blocks.subspan(block * type.block_bytes, type.block_bytes),
              integers);
  return integers;
}

TEST(IntegerForm, ExistsForTheFormatsOfTheIntegerKernels) {
  std::vector<std::string_view> names;
  for (const IntegerType& type : integer_types()) {
    if (type.info.is_in_files) {
      names.push_back(type.info.name);
    } else {
      EXPECT_TRUE(type.info.name.starts_with("AFFINE")) << type.info.name;
    }
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K",
                                                  "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
                                                  "IQ4_XS", "MXFP4", "NVFP4"}));
}

TEST(IntegerForm, UnitsNeverCrossABlockOfActivations) {
  for (const IntegerType& type : integer_types()) {
    EXPECT_EQ(type.layout.unit % 16, 0) << type.info.name;
    EXPECT_EQ(type.layout.unit % type.layout.sub, 0) << type.info.name;
    EXPECT_EQ(type.layout.activation_block % type.layout.unit, 0) << type.info.name;
    EXPECT_EQ(type.block_weights % type.activation_block, 0u) << type.info.name;
  }
}

TEST(IntegerForm, IsTheDecodedWeightWithinItsRoundings) {
  constexpr std::size_t n_blocks = 64;
  for (const IntegerType& type : integer_types()) {
    const auto blocks = random_blocks(type.info, 99, n_blocks);
    std::vector<float> weights(n_blocks * type.block_weights);
    decode(type.info.dtype, blocks, weights);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::size_t in_block = i % type.block_weights;
      const IntegerBlock integers = integers_of(type, blocks, i / type.block_weights);
      const std::size_t group = in_block / 16;
      const std::size_t unit = in_block / type.unit;
      const double scaled = static_cast<double>(integers.scales[unit]) *
                            (integers.sub_scales[group] * type.code(integers, in_block));
      const double offset =
          static_cast<double>(integers.offsets[unit]) * integers.sub_offsets[group];
      const double exact = scaled + offset;
      // That of the sum and, with a whole float as the scale, of the product.
      const double tolerance =
          type.layout.has_offset ? rounding * (std::fabs(exact) + std::fabs(scaled)) : 0.0;
      ASSERT_NEAR(weights[i], exact, tolerance) << type.info.name << ", weight " << i;
    }
  }
}

TEST(IntegerForm, KeepsOneSubScaleForTheWeightsThatShareIt) {
  for (const IntegerType& type : integer_types()) {
    const auto blocks = random_blocks(type.info, 5, 1);
    const IntegerBlock integers = integers_of(type, blocks, 0);
    for (std::size_t i = 0; i < type.block_weights; i += 16) {
      const std::size_t first = i / static_cast<std::size_t>(type.layout.sub) *
                                static_cast<std::size_t>(type.layout.sub) / 16;
      EXPECT_EQ(integers.sub_scales[i / 16], integers.sub_scales[first]) << type.info.name;
      EXPECT_EQ(integers.sub_offsets[i / 16], integers.sub_offsets[first]) << type.info.name;
    }
  }
}

TEST(IntegerForm, LargestSumsFitInThirtyTwoBits) {
  for (const IntegerType& type : integer_types()) {
    for (const int fill : {0x00, 0x0f, 0x55, 0x7f, 0x80, 0xaa, 0xf0, 0xff}) {
      const std::vector<std::byte> block(type.block_bytes, static_cast<std::byte>(fill));
      const IntegerBlock integers = integers_of(type, block, 0);
      std::int64_t isum = 0;
      std::int64_t msum = 0;
      for (std::size_t i = 0; i < type.unit; ++i) {  // activations of the worst sign
        isum += std::int64_t{127} * std::abs(integers.sub_scales[i / 16] * type.code(integers, i));
        msum += std::int64_t{127} * std::abs(static_cast<int>(integers.sub_offsets[i / 16]));
      }
      EXPECT_LE(isum, std::numeric_limits<std::int32_t>::max()) << type.info.name;
      EXPECT_LE(msum, std::numeric_limits<std::int32_t>::max()) << type.info.name;
    }
  }
}

struct Activations {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<std::int16_t> sums;
};

Activations random_activations(std::size_t n, int block) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& value : x) {
    value = normal(random);
  }
  Activations a{.codes = std::vector<std::int8_t>(n),
                .scales = std::vector<float>(n / static_cast<std::size_t>(block)),
                .sums = std::vector<std::int16_t>(n / activation_sum_group)};
  quantize_activations(x, block, {.codes = a.codes, .scales = a.scales, .sums = a.sums});
  return a;
}

struct Dot {
  float value = 0;       // by the canonical arithmetic of quant/integer_form.h
  double magnitude = 0;  // sum of the magnitudes of what was added up
  int n_roundings = 0;   // along the longest path to the value
};

Dot integer_dot(const IntegerType& type, Bytes row, const Activations& a) {
  Dot dot;
  const auto add = [&dot](float scale, std::int32_t sum) {
    dot.value = std::fma(scale, static_cast<float>(sum), dot.value);
    dot.magnitude += std::fabs(static_cast<double>(scale) * sum);
    dot.n_roundings += 1;
  };
  for (std::size_t k = 0; k < a.codes.size(); k += type.unit) {
    const IntegerBlock integers = integers_of(type, row, k / type.block_weights);
    const std::size_t first = k % type.block_weights;
    std::int32_t isum = 0;
    std::int32_t msum = 0;
    for (std::size_t i = 0; i < type.unit; ++i) {
      isum +=
          integers.sub_scales[(first + i) / 16] * type.code(integers, first + i) * a.codes[k + i];
    }
    for (std::size_t i = 0; i < type.unit; i += 16) {
      msum += integers.sub_offsets[(first + i) / 16] * a.sums[(k + i) / 16];
    }
    const float activation_scale = a.scales[k / type.activation_block];
    add(integers.scales[first / type.unit] * activation_scale, isum);
    if (type.layout.has_offset) {
      add(integers.offsets[first / type.unit] * activation_scale, msum);
    }
  }
  dot.n_roundings += 2;  // the scale product and the sum as a float
  return dot;
}

TEST(IntegerForm, DotProductIsThatOfTheDecodedWeights) {
  constexpr std::size_t n = 2048;
  for (const IntegerType& type : integer_types()) {
    const auto row = random_blocks(type.info, 3, n / type.block_weights);
    const Activations a = random_activations(n, type.layout.activation_block);
    std::vector<float> weights(n);
    decode(type.info.dtype, row, weights);

    double expected = 0;
    double decode_error = 0;  // decoding rounds where there is an offset
    for (std::size_t i = 0; i < n; ++i) {
      const double x = static_cast<double>(a.scales[i / type.activation_block]) * a.codes[i];
      expected += weights[i] * x;
      decode_error += type.layout.has_offset ? rounding * std::fabs(weights[i] * x) : 0.0;
    }
    const Dot dot = integer_dot(type, row, a);
    const double tolerance = dot.n_roundings * rounding * dot.magnitude + decode_error;
    EXPECT_NEAR(dot.value, expected, tolerance) << type.info.name;
  }
}

}  // namespace
}  // namespace hearth::quant
