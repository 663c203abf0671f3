#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// TQ2_0: 256 ternary weights share one f16 scale; weight = scale * (q - 1), q of two bits.
/// 66 bytes per 256 weights = 2.0625 bits per weight. Source: GGUF specification, tensor type 35.
struct TQ2_0 {
  static constexpr QuantInfo info{
      .name = "TQ2_0", .dtype = DType{35}, .block_weights = 256, .block_bytes = 66};
  struct Block {
    std::uint8_t q[64];  // per half of 128: two bits of weights l, 32 + l, 64 + l, 96 + l
    Half scale;
  };

  static void decode(const Block& block, std::span<float, 256> weights);
};

static_assert(HasOwnDecode<TQ2_0>);

}  // namespace hearth::quant
