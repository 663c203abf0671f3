#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/quant_type.h"
#include "quant/types/iq4_nl.h"
#include "quant/types/unpack.h"

namespace hearth::quant {

/// IQ4_XS: 256 weights in sub-blocks of 32; weight = scale * s * iq4_levels[q], with a 6-bit scale
/// s of -32...31 per sub-block. 136 bytes per 256 weights = 4.25 bits per weight. Source: GGUF
/// specification, tensor type 23.
struct IQ4_XS {
  static constexpr QuantInfo info{
      .name = "IQ4_XS", .dtype = DType{23}, .block_weights = 256, .block_bytes = 136};
  static constexpr IntegerLayout integers{
      .unit = 256, .sub = 32, .activation_block = 256, .has_offset = false};
  struct Block {
    Half scale;
    std::uint16_t scales_high;   // two bits per sub-block
    std::uint8_t scales_low[4];  // a nibble per sub-block
    std::uint8_t q[128];         // per sub-block 16 bytes, as in IQ4_NL
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    for (std::size_t g = 0; g < 8; ++g) {
      const int low = (block.scales_low[g / 2] >> (4 * (g % 2))) & 15;
      const int high = (block.scales_high >> (2 * g)) & 3;
      const auto scale = static_cast<std::int16_t>((low | high << 4) - 32);
      out.sub_scales[2 * g] = out.sub_scales[2 * g + 1] = scale;
      look_up_nibbles<16>(&block.q[16 * g], iq4_levels, &out.codes[32 * g]);
    }
  }
};

static_assert(HasIntegerForm<IQ4_XS>);

}  // namespace hearth::quant
