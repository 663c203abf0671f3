#include "quant/types/q2_0.h"

namespace hearth::quant {

void Q2_0::decode(const Block& block, std::span<float, 64> weights) {
  const float scale = to_float(block.scale);
  for (std::size_t byte = 0; byte < 16; ++byte) {
    for (std::size_t k = 0; k < 4; ++k) {
      const int q = (block.q[byte] >> (2 * k)) & 3;
      weights[4 * byte + k] = scale * static_cast<float>(q - 1);
    }
  }
}

}  // namespace hearth::quant
