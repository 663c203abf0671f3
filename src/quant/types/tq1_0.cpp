#include "quant/types/tq1_0.h"

namespace hearth::quant {
namespace {

/// weights[n_bytes * n + l] = scale * (digit n of packed[l] - 1)
template <int n_bytes, int n_digits>
void write_digits(const std::uint8_t* packed, float scale, float* weights) {
  int power = 1;  // 3^n
  for (std::size_t n = 0; n < n_digits; ++n) {
    for (std::size_t l = 0; l < n_bytes; ++l) {
      const int fraction = (packed[l] * power) & 255;
      weights[n_bytes * n + l] = scale * static_cast<float>((fraction * 3 >> 8) - 1);
    }
    power *= 3;
  }
}

}  // namespace

void TQ1_0::decode(const Block& block, std::span<float, 256> weights) {
  const float scale = to_float(block.scale);
  write_digits<32, 5>(block.fives_32, scale, &weights[0]);
  write_digits<16, 5>(block.fives_16, scale, &weights[160]);
  write_digits<4, 4>(block.fours, scale, &weights[240]);
}

}  // namespace hearth::quant
