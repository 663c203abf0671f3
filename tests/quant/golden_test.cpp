#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "quant/registry.h"

namespace hearth::quant {
namespace {

std::string lower(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

/// What tests/golden/quant/<type>.bin holds.
struct GoldenBlocks {
  std::vector<std::byte> blocks;
  std::vector<float> weights;
};

GoldenBlocks read_golden(const QuantInfo& type) {
  const auto path =
      std::filesystem::path(HEARTH_TESTS_DIR) / "golden" / "quant" / (lower(type.name) + ".bin");
  const auto file = MappedFile::open(path);
  if (!file) {
    ADD_FAILURE() << type.name << " has no golden blocks: " << file.error().message;
    return {};
  }
  const Bytes bytes = file->bytes();
  const auto block_bytes = static_cast<std::size_t>(type.block_bytes);
  const auto block_weights = static_cast<std::size_t>(type.block_weights);
  const std::size_t n_blocks = bytes.size() / (block_bytes + block_weights * sizeof(float));
  EXPECT_EQ(n_blocks * (block_bytes + block_weights * sizeof(float)), bytes.size());
  const Bytes blocks = bytes.first(n_blocks * block_bytes);
  GoldenBlocks golden{.blocks = {blocks.begin(), blocks.end()},
                      .weights = std::vector<float>(n_blocks * block_weights)};
  std::memcpy(golden.weights.data(), bytes.data() + blocks.size(),
              golden.weights.size() * sizeof(float));
  return golden;
}

/// Bit equality; any NaN equals any other.
void expect_same(std::span<const float> actual, std::span<const float> expected,
                 std::string_view type) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool same =
        std::bit_cast<std::uint32_t>(actual[i]) == std::bit_cast<std::uint32_t>(expected[i]) ||
        (std::isnan(actual[i]) && std::isnan(expected[i]));
    ASSERT_TRUE(same) << type << ", weight " << i << ": " << actual[i] << ", expected "
                      << expected[i];
  }
}

TEST(GoldenBlocks, DecodeBitForBitAsTheGgufPackageDoes) {
  for (const QuantInfo& type : in_files()) {
    if (!is_float_decodable(type.dtype)) {
      continue;
    }
    const GoldenBlocks golden = read_golden(type);
    ASSERT_GE(golden.weights.size(), 256u) << type.name;
    std::vector<float> weights(golden.weights.size());
    decode(type.dtype, golden.blocks, weights);
    expect_same(weights, golden.weights, type.name);
  }
}

TEST(GoldenBlocks, DecodeTheSameAtAnOddAddress) {
  for (const QuantInfo& type : in_files()) {
    if (!is_float_decodable(type.dtype)) {
      continue;
    }
    const GoldenBlocks golden = read_golden(type);
    std::vector<std::byte> shifted(1);
    shifted.insert(shifted.end(), golden.blocks.begin(), golden.blocks.end());
    std::vector<float> weights(golden.weights.size());
    decode(type.dtype, Bytes(shifted).subspan(1), weights);
    expect_same(weights, golden.weights, type.name);
  }
}

}  // namespace
}  // namespace hearth::quant
