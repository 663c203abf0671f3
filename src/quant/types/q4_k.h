#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "quant/quant_type.h"
#include "quant/types/k_scales.h"
#include "quant/types/unpack.h"

namespace hearth::quant {

/// Q4_K: 256 weights in sub-blocks of 32; weight = scale * s * q - min_scale * m, with a 6-bit
/// scale s and a 6-bit minimum m per sub-block. 144 bytes per 256 weights = 4.5 bits per weight.
/// Source: GGUF specification, tensor type 12.
struct Q4_K {
  static constexpr QuantInfo info{
      .name = "Q4_K", .dtype = DType{12}, .block_weights = 256, .block_bytes = 144};
  static constexpr IntegerLayout integers{
      .unit = 256, .sub = 32, .activation_block = 256, .has_offset = true};
  struct Block {
    Half scale;
    Half min_scale;
    std::uint8_t scales[12];  // quant/types/k_scales.h
    std::uint8_t q[128];      // per 64 weights 32 bytes; low nibbles first
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    out.offsets[0] = -to_float(block.min_scale);
    unpack_k_scales(block.scales, out);
    for (std::size_t pair = 0; pair < 4; ++pair) {
      unpack_nibbles<32>(&block.q[32 * pair], 0, &out.codes[64 * pair]);
    }
  }
};

static_assert(HasIntegerForm<Q4_K>);

}  // namespace hearth::quant
