#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/quant_type.h"
#include "quant/types/unpack.h"

namespace hearth::quant {

/// Q4_1: 32 weights share one f16 scale and one f16 offset; weight = scale * q + offset.
/// 20 bytes per 32 weights = 5 bits per weight. Source: GGUF specification, tensor type 3.
struct Q4_1 {
  static constexpr QuantInfo info{
      .name = "Q4_1", .dtype = DType{3}, .block_weights = 32, .block_bytes = 20};
  static constexpr IntegerLayout integers{
      .unit = 32, .sub = 32, .activation_block = 32, .has_offset = true};
  struct Block {
    Half scale;
    Half offset;
    std::uint8_t q[16];  // low nibbles: weights 0-15; high nibbles: 16-31
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    out.offsets[0] = to_float(block.offset);
    out.sub_scales[0] = out.sub_scales[1] = 1;
    out.sub_offsets[0] = out.sub_offsets[1] = 1;
    unpack_nibbles<16>(block.q, 0, out.codes.data());
  }
};

static_assert(HasIntegerForm<Q4_1>);

}  // namespace hearth::quant
