#include "quant/affine.h"

#include <bit>
#include <cmath>
#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/half.h"
#include "base/mapped_file.h"
#include "quant/registry.h"

namespace hearth::quant {
namespace {

constexpr std::size_t n_rows = 2;
constexpr std::size_t n_columns = 128;

/// One record of tests/golden/mlx/affine.bin.
struct GoldenRows {
  AffineFormat layout;
  Bytes codes;        // [2, 128]
  Bytes scales;       // [2, 128 / group]
  Bytes offsets;      // likewise
  Bytes weights;      // f32 [2, 128], decoded in float32
  Bytes own_weights;  // f32 [2, 128], decoded in the type of the scales

  [[nodiscard]] std::string name() const {
    return format("{} bits, groups of {}, {} scales", layout.bits, layout.group,
                  quant::name(layout.scale_type));
  }
};

Bytes take(Bytes& rest, std::size_t n) {
  const Bytes taken = rest.first(n);
  rest = rest.subspan(n);
  return taken;
}

std::vector<GoldenRows> records_of(Bytes file) {
  std::vector<GoldenRows> records;
  for (const DType scale_type : {DType::f32, DType::f16, DType::bf16}) {
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      for (const int group : {32, 64, 128}) {
        constexpr std::size_t n = n_rows * n_columns;
        const std::size_t scale_bytes = n / static_cast<std::size_t>(group) *
                                        static_cast<std::size_t>(info(scale_type).block_bytes);
        GoldenRows rows{.layout = {bits, group, scale_type}};
        rows.codes = take(file, n * static_cast<std::size_t>(bits) / 8);
        rows.scales = take(file, scale_bytes);
        rows.offsets = take(file, scale_bytes);
        rows.weights = take(file, n * sizeof(float));
        rows.own_weights = take(file, n * sizeof(float));
        records.push_back(rows);
      }
    }
  }
  EXPECT_TRUE(file.empty());
  return records;
}

/// Both rows as blocks, packed in two pieces each.
std::vector<std::byte> pack(const GoldenRows& rows) {
  const DType type = *affine_type(rows.layout);
  const auto row_size = static_cast<std::size_t>(row_bytes(type, n_columns));
  std::vector<std::byte> blocks(n_rows * row_size);
  for (std::size_t row = 0; row < n_rows; ++row) {
    const auto half = [row](Bytes both) {
      return both.subspan(row * both.size() / n_rows, both.size() / n_rows);
    };
    const AffineRow parts{half(rows.codes), half(rows.scales), half(rows.offsets)};
    const auto out = std::span(blocks).subspan(row * row_size, row_size);
    pack_affine(rows.layout, parts, 0, out.first(row_size / 2));
    pack_affine(rows.layout, parts, n_columns / 2, out.subspan(row_size / 2));
  }
  return blocks;
}

class AffineGolden : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = std::filesystem::path(HEARTH_TESTS_DIR) / "golden" / "mlx" / "affine.bin";
    auto file = MappedFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    file_.emplace(std::move(*file));
    records_ = records_of(file_->bytes());
  }

  std::optional<MappedFile> file_;
  std::vector<GoldenRows> records_;
};

/// Bit equality; any NaN equals any other.
bool is_same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

TEST_F(AffineGolden, DecodesBitForBitAsMlxDoesInFloat32) {
  for (const GoldenRows& rows : records_) {
    std::vector<float> weights(n_rows * n_columns);
    decode(*affine_type(rows.layout), pack(rows), weights);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto expected = load<float>(rows.weights.data(), i * sizeof(float));
      ASSERT_TRUE(is_same(weights[i], expected))
          << rows.name() << ", weight " << i << ": " << weights[i] << ", expected " << expected;
    }
  }
}

/// x rounded to a type.
float round_to(DType type, float x) {
  return type == DType::f16    ? to_float(to_half(x))
         : type == DType::bf16 ? to_float(to_bfloat16(x))
                               : x;
}

TEST_F(AffineGolden, HasTheNumbersOfWhichMlxRoundsProductAndSumToItsOwnType) {
  for (const GoldenRows& rows : records_) {
    const DType type = *affine_type(rows.layout);
    const auto& integers = *integer_layout(type);
    const auto block_weights = static_cast<std::size_t>(info(type).block_weights);
    const auto block_bytes = static_cast<std::size_t>(info(type).block_bytes);
    const auto blocks = pack(rows);
    for (std::size_t i = 0; i < n_rows * n_columns; ++i) {
      IntegerBlock block;
      to_integers(type, Bytes(blocks).subspan(i / block_weights * block_bytes, block_bytes), block);
      const std::size_t in_block = i % block_weights;
      const auto unit = in_block / static_cast<std::size_t>(integers.unit);
      const auto code = static_cast<float>(integers.code_zero + block.codes[in_block]);
      const float product = round_to(rows.layout.scale_type, block.scales[unit] * code);
      const float weight = round_to(rows.layout.scale_type, product + block.offsets[unit]);
      const auto expected = load<float>(rows.own_weights.data(), i * sizeof(float));
      ASSERT_TRUE(is_same(weight, expected))
          << rows.name() << ", weight " << i << ": " << weight << ", expected " << expected;
    }
  }
}

TEST_F(AffineGolden, IsTheSameWeightsInTheTypesOfFilesWhereTheNumbersAreHalves) {
  int n_repacked = 0;
  for (const GoldenRows& rows : records_) {
    const DType type = *affine_type(rows.layout);
    const auto target = affine_file_type(type);
    ASSERT_EQ(target.has_value(), rows.layout.bits <= 5) << rows.name();
    if (!target) {
      continue;
    }
    auto blocks = pack(rows);
    blocks.resize(blocks.size() / 2);  // the first row: numbers that quantizing gives
    std::vector<std::byte> repacked(static_cast<std::size_t>(
        affine_file_bytes(type, static_cast<std::int64_t>(blocks.size()))));
    const bool is_same_weights = repack_for_file(type, blocks, repacked);
    EXPECT_EQ(is_same_weights, rows.layout.scale_type != DType::f32) << rows.name();
    std::vector<float> weights(n_columns);
    decode(*target, repacked, weights);
    for (std::size_t i = 0; is_same_weights && i < n_columns; ++i) {
      ASSERT_TRUE(is_same(weights[i], load<float>(rows.weights.data(), i * sizeof(float))))
          << rows.name() << ", weight " << i;
    }
    n_repacked += is_same_weights ? 1 : 0;
  }
  EXPECT_EQ(n_repacked, 24);  // 2 to 5 bits, three groups, F16 and BF16
}

TEST(AffineType, KeepsSixteenBitScalesForGroupsOfTheSizeOfABlock) {
  EXPECT_EQ(name(*affine_type({4, 64, DType::bf16})), "AFFINE4_BF16");
  EXPECT_EQ(name(*affine_type({8, 128, DType::f16})), "AFFINE8_F16");
  EXPECT_EQ(name(*affine_type({3, 64, DType::f32})), "AFFINE3_F32");
  EXPECT_EQ(name(*affine_type({4, 32, DType::bf16})), "AFFINE4_F32");
}

TEST(AffineType, ExistsForNoOtherNumbersThanThoseOfMlx) {
  for (const AffineFormat format :
       {AffineFormat{7, 64, DType::f16}, AffineFormat{1, 64, DType::f16},
        AffineFormat{4, 16, DType::f16}, AffineFormat{4, 96, DType::f16},
        AffineFormat{4, 0, DType::f16}, AffineFormat{-4, 64, DType::f16},
        AffineFormat{4, 64, DType::i8}}) {
    EXPECT_EQ(affine_type(format), std::nullopt) << format.bits << ", " << format.group;
  }
}

}  // namespace
}  // namespace hearth::quant
