#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/quant_type.h"
#include "quant/types/unpack.h"

namespace hearth::quant {

/// Q5_0: 32 weights share one f16 scale; weight = scale * (q - 16).
/// 22 bytes per 32 weights = 5.5 bits per weight. Source: GGUF specification, tensor type 6.
struct Q5_0 {
  static constexpr QuantInfo info{
      .name = "Q5_0", .dtype = DType{6}, .block_weights = 32, .block_bytes = 22};
  static constexpr IntegerLayout integers{
      .unit = 32, .sub = 32, .activation_block = 32, .has_offset = false};
  struct Block {
    Half scale;
    std::uint8_t high[4];  // bit i: the fifth bit of weight i
    std::uint8_t q[16];    // low nibbles: weights 0-15; high nibbles: 16-31
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    out.sub_scales[0] = out.sub_scales[1] = 1;
    unpack_five_bits(block.q, block.high, 16, out.codes.data());
  }
};

static_assert(HasIntegerForm<Q5_0>);

}  // namespace hearth::quant
