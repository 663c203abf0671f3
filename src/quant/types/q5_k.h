#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/quant_type.h"
#include "quant/types/k_scales.h"

namespace hearth::quant {

/// Q5_K: 256 weights in sub-blocks of 32; weight = scale * s * q - min_scale * m, as Q4_K with a
/// fifth bit per weight.
/// 176 bytes per 256 weights = 5.5 bits per weight. Source: GGUF specification, tensor type 13.
struct Q5_K {
  static constexpr QuantInfo info{
      .name = "Q5_K", .dtype = DType{13}, .block_weights = 256, .block_bytes = 176};
  static constexpr IntegerLayout integers{
      .unit = 256, .sub = 32, .activation_block = 256, .has_offset = true};
  struct Block {
    Half scale;
    Half min_scale;
    std::uint8_t scales[12];  // quant/types/k_scales.h
    std::uint8_t high[32];    // bit g of byte l is the fifth bit of weight 32 g + l
    std::uint8_t q[128];      // as in Q4_K
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    out.offsets[0] = -to_float(block.min_scale);
    unpack_k_scales(block.scales, out);
    for (std::size_t pair = 0; pair < 4; ++pair) {
      for (std::size_t l = 0; l < 32; ++l) {
        const int nibbles = block.q[32 * pair + l];
        const int high = block.high[l] >> (2 * pair);
        out.codes[64 * pair + l] = static_cast<std::int8_t>((nibbles & 15) | (high & 1) << 4);
        out.codes[64 * pair + 32 + l] = static_cast<std::int8_t>((nibbles >> 4) | (high & 2) << 3);
      }
    }
  }
};

static_assert(HasIntegerForm<Q5_K>);

}  // namespace hearth::quant
