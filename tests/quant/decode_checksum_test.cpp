#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "quant/registry.h"
#include "tests/quant/random_blocks.h"
#include "tests/quant/sha256.h"

namespace hearth::quant {
namespace {

/// Beginnings of the SHA-256 of 64 blocks of random_blocks(type, its number) and of their weights,
/// made with the reference implementation of the format.
struct Checksum {
  std::string_view type;
  std::string_view blocks;
  std::string_view weights;
};

constexpr std::array checksums{
    Checksum{"Q4_0", "1088d1e1eb446f28", "e669af2cad410bd6885306fbaf75f1e4"},
    Checksum{"Q4_1", "2d61f1a2a3bc22b7", "22a9ab0304e84ed9195bb3390a578e09"},
    Checksum{"Q5_0", "993ae5fb37d6e10d", "bc1c33dbfeeba16b7f18ba19cf8c2a7b"},
    Checksum{"Q5_1", "de6c95cb31bd4a48", "81fd530eee106678380b091c401f6e28"},
    Checksum{"Q8_0", "60194679c6d36dbe", "897753a34e1c5399fd5276e57bd1c682"},
    Checksum{"Q2_K", "14717f8b2c1bd562", "8b41dce273c50de07d2f97946a532c63"},
    Checksum{"Q3_K", "af7e6800f5f86b09", "dbe7ec983bcb364759e961719c049258"},
    Checksum{"Q4_K", "dfd8d1e941a1857a", "d997c509c1f2a6cd9fa96032b84fda57"},
    Checksum{"Q5_K", "f612f54e27f800b8", "e2ca15c1fd350ad1145c9c783b0ee1f0"},
    Checksum{"Q6_K", "957cac0208096dd8", "85c74e59f60745f872ea7bc5eade55fc"},
    Checksum{"IQ2_XXS", "305a03b218a2799b", "804992abb76d7b738cce7ebd06c5a647"},
    Checksum{"IQ2_XS", "3b6a593f2d75a4f7", "418c281d352ccc8b2735d8f4b5c6107a"},
    Checksum{"IQ3_XXS", "e84612adfa6e56b7", "562f5fe9297643eafdb588595a694f38"},
    Checksum{"IQ1_S", "460c5f7c5dfb6964", "9de96cd8e1419d2c1c5112ce297528f3"},
    Checksum{"IQ4_NL", "f340d32f0fec7ab9", "e8558358b1ce58b40b364b1bd5c0cc41"},
    Checksum{"IQ3_S", "ba651bef65482acf", "d10e59d3e9d476f2b928025aa0390933"},
    Checksum{"IQ2_S", "b187fc6026954189", "2b52e252acdbc2dbd2375b3f3b2abd22"},
    Checksum{"IQ4_XS", "d70cc0e2093ffe05", "e31b851d638f1fd2e64c7727b3f92f3d"},
    Checksum{"IQ1_M", "b5f98638e4ee319f", "abe5d2f9eec5da6d0e7e3041ae0da375"},
    Checksum{"TQ1_0", "c04f64e2b2d412c0", "95281f386d3afb9e0fd78a761c0f34d6"},
    Checksum{"TQ2_0", "d0edc0f86d948216", "0fda7bafcebdb1315645c00041d81dd1"},
    Checksum{"MXFP4", "6c623ce3d15eae9c", "387424f6e51719541285dd7cc651e88a"},
    Checksum{"NVFP4", "e27cfa5da64d4147", "3b9ae1871cb4c4de85f6754bc315803f"},
    Checksum{"Q1_0", "a846583b12c0558d", "23417bcf9c44563503143623596b709f"},
    Checksum{"Q2_0", "adfcfebd39063303", "b21e86d4ad33ccfbec1b4ecac8e13621"},
};

class DecodeChecksum : public testing::TestWithParam<Checksum> {};

TEST_P(DecodeChecksum, IsThatOfTheReferenceImplementation) {
  const QuantInfo* type = find(GetParam().type);
  ASSERT_NE(type, nullptr);
  const auto blocks = random_blocks(*type, static_cast<std::uint32_t>(type->dtype), 64);
  ASSERT_EQ(sha256(blocks).substr(0, 16), GetParam().blocks) << "the generator is wrong";

  std::vector<float> weights(64 * static_cast<std::size_t>(type->block_weights));
  decode(type->dtype, blocks, weights);
  for (float& weight : weights) {
    weight += 0.0f;  // the sums are over values without negative zeros
  }
  EXPECT_EQ(sha256(std::as_bytes(std::span(weights))).substr(0, 32), GetParam().weights);
}

INSTANTIATE_TEST_SUITE_P(BlockFormats, DecodeChecksum, testing::ValuesIn(checksums),
                         [](const auto& param) { return std::string(param.param.type); });

}  // namespace
}  // namespace hearth::quant
