#include "quant/types/iq3_xxs.h"

#include "base/bytes.h"
#include "quant/types/iq_grids.h"

namespace hearth::quant {

void IQ3_XXS::decode(const Block& block, std::span<float, 256> weights) {
  const float d = to_float(block.scale);
  for (std::size_t g = 0; g < 8; ++g) {
    const auto word = load<std::uint32_t>(block.words[g]);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    for (std::size_t r = 0; r < 8; ++r) {
      const int signs = even_signs((word >> (7 * (r / 2))) & 127) >> (4 * (r % 2));
      const auto row = unpack_grid_row(iq3_xxs_grid[block.rows[8 * g + r]], iq3_xxs_values);
      write_signed(scale, row, signs, &weights[32 * g + 4 * r]);
    }
  }
}

}  // namespace hearth::quant
