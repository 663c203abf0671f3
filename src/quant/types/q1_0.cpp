#include "quant/types/q1_0.h"

namespace hearth::quant {

void Q1_0::decode(const Block& block, std::span<float, 128> weights) {
  const float scale = to_float(block.scale);
  for (std::size_t byte = 0; byte < 16; ++byte) {
    for (std::size_t k = 0; k < 8; ++k) {
      weights[8 * byte + k] = (block.bits[byte] >> k) & 1 ? scale : -scale;
    }
  }
}

}  // namespace hearth::quant
