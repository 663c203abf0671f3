#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// Q2_K: 256 weights in groups of 16; weight = scale * s * q - min_scale * m, with a 4-bit scale s
/// and a 4-bit minimum m per group.
/// 84 bytes per 256 weights = 2.625 bits per weight. Source: GGUF specification, tensor type 10.
struct Q2_K {
  static constexpr QuantInfo info{
      .name = "Q2_K", .dtype = DType{10}, .block_weights = 256, .block_bytes = 84};
  static constexpr IntegerLayout integers{
      .unit = 256, .sub = 16, .activation_block = 256, .has_offset = true};
  struct Block {
    std::uint8_t scales[16];  // per group: s in the low nibble, m in the high one
    std::uint8_t q[64];       // per half of 128: two bits of weights l, 32 + l, 64 + l, 96 + l
    Half scale;
    Half min_scale;
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    out.offsets[0] = -to_float(block.min_scale);
    for (std::size_t i = 0; i < 16; ++i) {
      out.sub_scales[i] = static_cast<std::int16_t>(block.scales[i] & 15);
      out.sub_offsets[i] = static_cast<std::int16_t>(block.scales[i] >> 4);
    }
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t j = 0; j < 4; ++j) {
        for (std::size_t l = 0; l < 32; ++l) {
          out.codes[128 * half + 32 * j + l] =
              static_cast<std::int8_t>((block.q[32 * half + l] >> (2 * j)) & 3);
        }
      }
    }
  }
};

static_assert(HasIntegerForm<Q2_K>);

}  // namespace hearth::quant
