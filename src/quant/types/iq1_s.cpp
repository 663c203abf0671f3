#include "quant/types/iq1_s.h"

#include "quant/types/iq_grids.h"

namespace hearth::quant {

void IQ1_S::decode(const Block& block, std::span<float, 256> weights) {
  const float d = to_float(block.scale);
  for (std::size_t g = 0; g < 8; ++g) {
    const int group = block.groups[g];
    const float scale = d * static_cast<float>(2 * ((group >> 12) & 7) + 1);
    const float shift = group & 0x8000 ? -0.125f : 0.125f;
    for (std::size_t l = 0; l < 4; ++l) {
      const std::uint32_t high = (group >> (3 * l)) & 7;
      const auto row = unpack_grid_row(iq1_grid[block.rows_low[4 * g + l] | high << 8], iq1_values);
      for (std::size_t k = 0; k < 8; ++k) {
        weights[32 * g + 8 * l + k] = scale * (row[k] + shift);
      }
    }
  }
}

}  // namespace hearth::quant
