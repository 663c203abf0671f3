#include "quant/types/iq2_s.h"

#include "quant/types/iq_grids.h"

namespace hearth::quant {

void IQ2_S::decode(const Block& block, std::span<float, 256> weights) {
  const float d = to_float(block.scale);
  for (std::size_t r = 0; r < 32; ++r) {
    const int s = (block.scales[r / 4] >> (4 * ((r / 2) % 2))) & 15;
    const float scale = d * (0.5f + static_cast<float>(s)) * 0.25f;
    const std::uint32_t high = (block.rows_high[r / 4] >> (2 * (r % 4))) & 3;
    const auto row = unpack_grid_row(iq2_s_grid[block.rows_low[r] | high << 8], iq2_values);
    write_signed(scale, row, block.signs[r], &weights[8 * r]);
  }
}

}  // namespace hearth::quant
