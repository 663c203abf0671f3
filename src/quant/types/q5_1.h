#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/quant_type.h"
#include "quant/types/unpack.h"

namespace hearth::quant {

/// Q5_1: 32 weights share one f16 scale and one f16 offset; weight = scale * q + offset.
/// 24 bytes per 32 weights = 6 bits per weight. Source: GGUF specification, tensor type 7.
struct Q5_1 {
  static constexpr QuantInfo info{
      .name = "Q5_1", .dtype = DType{7}, .block_weights = 32, .block_bytes = 24};
  static constexpr IntegerLayout integers{
      .unit = 32, .sub = 32, .activation_block = 32, .has_offset = true};
  struct Block {
    Half scale;
    Half offset;
    std::uint8_t high[4];  // bit i: the fifth bit of weight i
    std::uint8_t q[16];    // low nibbles: weights 0-15; high nibbles: 16-31
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    out.offsets[0] = to_float(block.offset);
    out.sub_scales[0] = out.sub_scales[1] = 1;
    out.sub_offsets[0] = out.sub_offsets[1] = 1;
    unpack_five_bits(block.q, block.high, 0, out.codes.data());
  }
};

static_assert(HasIntegerForm<Q5_1>);

}  // namespace hearth::quant
