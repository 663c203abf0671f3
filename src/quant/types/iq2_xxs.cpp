#include "quant/types/iq2_xxs.h"

#include "base/bytes.h"
#include "quant/types/iq_grids.h"

namespace hearth::quant {

void IQ2_XXS::decode(const Block& block, std::span<float, 256> weights) {
  const float d = to_float(block.scale);
  for (std::size_t g = 0; g < 8; ++g) {
    const std::uint8_t* group = block.groups[g];
    const auto word = load<std::uint32_t>(group, 4);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (std::size_t l = 0; l < 4; ++l) {
      const auto row = unpack_grid_row(iq2_xxs_grid[group[l]], iq2_values);
      write_signed(scale, row, even_signs((word >> (7 * l)) & 127), &weights[32 * g + 8 * l]);
    }
  }
}

}  // namespace hearth::quant
