#include "quant/types/iq3_s.h"

#include "quant/types/iq_grids.h"

namespace hearth::quant {

void IQ3_S::decode(const Block& block, std::span<float, 256> weights) {
  const float d = to_float(block.scale);
  for (std::size_t g = 0; g < 8; ++g) {
    const int s = (block.scales[g / 2] >> (4 * (g % 2))) & 15;
    const float scale = d * static_cast<float>(1 + 2 * s);
    for (std::size_t r = 0; r < 8; ++r) {
      const std::uint32_t high = (block.rows_high[g] >> r) & 1;
      const int signs = block.signs[4 * g + r / 2] >> (4 * (r % 2));
      const auto row =
          unpack_grid_row(iq3_s_grid[block.rows_low[8 * g + r] | high << 8], iq3_s_values);
      write_signed(scale, row, signs, &weights[32 * g + 4 * r]);
    }
  }
}

}  // namespace hearth::quant
