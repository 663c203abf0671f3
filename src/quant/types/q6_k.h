#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// Q6_K: 256 weights in groups of 16; weight = scale * s * (q - 32), with an 8-bit scale s per
/// group. 210 bytes per 256 weights = 6.5625 bits per weight. Source: GGUF specification, tensor
/// type 14.
struct Q6_K {
  static constexpr QuantInfo info{
      .name = "Q6_K", .dtype = DType{14}, .block_weights = 256, .block_bytes = 210};
  static constexpr IntegerLayout integers{
      .unit = 256, .sub = 16, .activation_block = 256, .has_offset = false};
  struct Block {
    std::uint8_t low[128];  // per half of 128 weights 64 bytes: weights 0-63 | 64-127
    std::uint8_t high[64];  // per half 32 bytes: two bits of weights l, 32 + l, 64 + l, 96 + l
    std::int8_t scales[16];
    Half scale;
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    for (std::size_t i = 0; i < 16; ++i) {
      out.sub_scales[i] = static_cast<std::int16_t>(block.scales[i]);
    }
    for (std::size_t half = 0; half < 2; ++half) {
      const std::uint8_t* low = &block.low[64 * half];
      const std::uint8_t* high = &block.high[32 * half];
      std::int8_t* codes = &out.codes[128 * half];
      for (std::size_t l = 0; l < 32; ++l) {
        const int h = high[l];
        codes[l] = static_cast<std::int8_t>(((low[l] & 15) | (h & 3) << 4) - 32);
        codes[32 + l] = static_cast<std::int8_t>(((low[32 + l] & 15) | (h & 12) << 2) - 32);
        codes[64 + l] = static_cast<std::int8_t>(((low[l] >> 4) | (h & 48)) - 32);
        codes[96 + l] = static_cast<std::int8_t>(((low[32 + l] >> 4) | (h & 192) >> 2) - 32);
      }
    }
  }
};

static_assert(HasIntegerForm<Q6_K>);

}  // namespace hearth::quant
