#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/quant_type.h"
#include "quant/types/unpack.h"

namespace hearth::quant {

/// The sixteen levels of IQ4_NL and IQ4_XS, denser around zero as weights are.
inline constexpr std::array<std::int8_t, 16> iq4_levels{-127, -104, -83, -65, -49, -35, -22, -10,
                                                        1,    13,   25,  38,  53,  69,  89,  113};

/// IQ4_NL: 32 weights share one f16 scale; weight = scale * iq4_levels[q].
/// 18 bytes per 32 weights = 4.5 bits per weight. Source: GGUF specification, tensor type 20.
struct IQ4_NL {
  static constexpr QuantInfo info{
      .name = "IQ4_NL", .dtype = DType{20}, .block_weights = 32, .block_bytes = 18};
  static constexpr IntegerLayout integers{
      .unit = 32, .sub = 32, .activation_block = 32, .has_offset = false};
  struct Block {
    Half scale;
    std::uint8_t q[16];  // low nibbles: weights 0-15; high nibbles: 16-31
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    out.sub_scales[0] = out.sub_scales[1] = 1;
    look_up_nibbles<16>(block.q, iq4_levels, out.codes.data());
  }
};

static_assert(HasIntegerForm<IQ4_NL>);

}  // namespace hearth::quant
