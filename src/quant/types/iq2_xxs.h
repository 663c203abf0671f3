#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// IQ2_XXS: 256 weights, 8 per codebook row; weight = scale * (1/2 + s) / 4 * +-row[k], with a
/// 4-bit scale s per 32 weights. Of the eight signs of a row seven are stored. 66 bytes per 256
/// weights = 2.0625 bits per weight. Source: GGUF specification, tensor type 16.
struct IQ2_XXS {
  static constexpr QuantInfo info{
      .name = "IQ2_XXS", .dtype = DType{16}, .block_weights = 256, .block_bytes = 66};
  struct Block {
    Half scale;
    std::uint8_t groups[8][8];  // 4 rows, then a word: 4 times 7 sign bits, 4 bits of scale
  };

  static void decode(const Block& block, std::span<float, 256> weights);
};

static_assert(HasOwnDecode<IQ2_XXS>);

}  // namespace hearth::quant
