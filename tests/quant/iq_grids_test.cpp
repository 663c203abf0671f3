#include "quant/types/iq_grids.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/quant/sha256.h"

namespace hearth::quant {
namespace {

/// SHA-256 over the values as int8 and over the indices as bytes, row after row, of the codebooks
/// of the reference implementation.
struct GridChecksum {
  std::string_view values;
  std::string_view indices;
};

template <std::size_t n_rows, std::size_t n_values>
void expect_grid(const std::array<std::uint16_t, n_rows>& grid,
                 const std::array<std::int8_t, n_values>& values, const GridChecksum& expected) {
  std::vector<std::byte> value_bytes;
  std::vector<std::byte> index_bytes;
  for (std::uint16_t row : grid) {
    for (const float value : unpack_grid_row(row, values)) {
      value_bytes.push_back(static_cast<std::byte>(static_cast<std::int8_t>(value)));
      index_bytes.push_back(static_cast<std::byte>(row % n_values));
      row = static_cast<std::uint16_t>(row / n_values);
    }
  }
  EXPECT_EQ(sha256(value_bytes), expected.values);
  EXPECT_EQ(sha256(index_bytes), expected.indices);
  EXPECT_TRUE(std::ranges::is_sorted(grid, std::less_equal{}));
}

TEST(IqGrids, HaveThePublishedChecksums) {
  expect_grid(iq2_xxs_grid, iq2_values,
              {.values = "05826b5d3e472a3a78f196be62ac78acf81df0f909626e12ab9fa2a5d490dd54",
               .indices = "886814bc08b031008eb1086cdbc5c3fae78eecc764a4a6742f8eb839b9f37ef6"});
  expect_grid(iq2_xs_grid, iq2_values,
              {.values = "06e47aaca60b4dc1d9b5a3f34540437058a6b142b4d7a59d5ded769b4d1bf1de",
               .indices = "e9567eb15257b717a029c8c1e574ffd87af0c95090552eff83eb6e09b1211046"});
  expect_grid(iq2_s_grid, iq2_values,
              {.values = "e1aa1473412b0552c2174c30ef22ab4073f6a181b85a17056e8249bd2932fd88",
               .indices = "1d4ca1e2fbd2be073bef55f6582ad20109dc746ebd39b5c0780d57ebacc73024"});
  expect_grid(iq3_xxs_grid, iq3_xxs_values,
              {.values = "46e35f5a997efdee6c99ce57854c8a0d4f0ff8ca57e5e8a60c0793ea580acf5d",
               .indices = "e86540e4e7b2d3375c137ffe84467dc402396c6da24273f9007b5db112172f4c"});
  expect_grid(iq3_s_grid, iq3_s_values,
              {.values = "bd1af4945a1717c65610b0284e4628b9a1ba3b306fae3a06f6e5f597356e349f",
               .indices = "acb8a458f699e571cf55c9270a4bc15facd6653b40450ce1f449f345c95e4407"});
  expect_grid(iq1_grid, iq1_values,
              {.values = "07540ffc1aeaf6ad4d97e96b0fcc765aae39671d4ae4a27bbd0e796fde167c6a",
               .indices = "bf92c60e2ed15644d2d948b652a55624cc35699ef5c8e0337258e332f8c47b48"});
}

TEST(IqGrids, EvenSignsHaveAnEvenNumberOfBits) {
  for (std::uint32_t seven = 0; seven < 128; ++seven) {
    const std::uint8_t eight = even_signs(seven);
    EXPECT_EQ(eight & 127, static_cast<int>(seven));
    EXPECT_EQ(std::popcount(eight) % 2, 0) << seven;
  }
}

}  // namespace
}  // namespace hearth::quant
