#include "quant/types/iq1_m.h"

#include "quant/types/iq_grids.h"

namespace hearth::quant {

void IQ1_M::decode(const Block& block, std::span<float, 256> weights) {
  std::uint16_t scale_bits = 0;  // word 0 holds the lowest nibble
  for (std::size_t word = 0; word < 4; ++word) {
    scale_bits = static_cast<std::uint16_t>(scale_bits | block.scales[word] >> 12 << (4 * word));
  }
  const float d = to_float(Half{scale_bits});
  for (std::size_t r = 0; r < 32; ++r) {
    const int s = (block.scales[r / 8] >> (3 * ((r / 2) % 4))) & 7;
    const float scale = d * static_cast<float>(2 * s + 1);
    const std::uint32_t nibble = (block.rows_high[r / 2] >> (4 * (r % 2))) & 15;
    const float shift = nibble & 8 ? -0.125f : 0.125f;
    const auto row = unpack_grid_row(iq1_grid[block.rows_low[r] | (nibble & 7) << 8], iq1_values);
    for (std::size_t k = 0; k < 8; ++k) {
      weights[8 * r + k] = scale * (row[k] + shift);
    }
  }
}

}  // namespace hearth::quant
