#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// IQ3_XXS: 256 weights, 4 per codebook row; weight = scale * (1/2 + s) / 2 * +-row[k], with a
/// 4-bit scale s per 32 weights. Of eight signs seven are stored. 98 bytes per 256 weights = 3.0625
/// bits per weight. Source: GGUF specification, tensor type 18.
struct IQ3_XXS {
  static constexpr QuantInfo info{
      .name = "IQ3_XXS", .dtype = DType{18}, .block_weights = 256, .block_bytes = 98};
  struct Block {
    Half scale;
    std::uint8_t rows[64];
    std::uint8_t words[8][4];  // per 32 weights: 4 times 7 sign bits, 4 bits of scale
  };

  static void decode(const Block& block, std::span<float, 256> weights);
};

static_assert(HasOwnDecode<IQ3_XXS>);

}  // namespace hearth::quant
