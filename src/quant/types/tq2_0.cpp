#include "quant/types/tq2_0.h"

namespace hearth::quant {

void TQ2_0::decode(const Block& block, std::span<float, 256> weights) {
  const float scale = to_float(block.scale);
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t l = 0; l < 32; ++l) {
        const int q = (block.q[32 * half + l] >> (2 * j)) & 3;
        weights[128 * half + 32 * j + l] = scale * static_cast<float>(q - 1);
      }
    }
  }
}

}  // namespace hearth::quant
