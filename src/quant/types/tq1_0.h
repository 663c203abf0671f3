#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// TQ1_0: 256 ternary weights share one f16 scale; weight = scale * (t - 1), t in 0...2.
/// A byte holds up to five t as the fraction 0.t0 t1 t2 t3 t4 in base 3, scaled to 256 and rounded
/// up, so that multiplying by 3 carries out the next digit.
/// 54 bytes per 256 weights = 1.6875 bits per weight. Source: GGUF specification, tensor type 34.
struct TQ1_0 {
  static constexpr QuantInfo info{
      .name = "TQ1_0", .dtype = DType{34}, .block_weights = 256, .block_bytes = 54};
  struct Block {
    std::uint8_t fives_32[32];  // digit n of byte l: weight 32 n + l
    std::uint8_t fives_16[16];  // digit n of byte l: weight 160 + 16 n + l
    std::uint8_t fours[4];      // digit n of byte l: weight 240 + 4 n + l
    Half scale;
  };

  static void decode(const Block& block, std::span<float, 256> weights);
};

static_assert(HasOwnDecode<TQ1_0>);

}  // namespace hearth::quant
