#include "quant/types/iq2_xs.h"

#include "quant/types/iq_grids.h"

namespace hearth::quant {

void IQ2_XS::decode(const Block& block, std::span<float, 256> weights) {
  const float d = to_float(block.scale);
  for (std::size_t r = 0; r < 32; ++r) {
    const int s = (block.scales[r / 4] >> (4 * ((r / 2) % 2))) & 15;
    const float scale = d * (0.5f + static_cast<float>(s)) * 0.25f;
    const std::uint32_t code = block.rows[r];
    const auto row = unpack_grid_row(iq2_xs_grid[code & 511], iq2_values);
    write_signed(scale, row, even_signs(code >> 9), &weights[8 * r]);
  }
}

}  // namespace hearth::quant
