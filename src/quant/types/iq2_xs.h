#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// IQ2_XS: 256 weights, 8 per codebook row; weight = scale * (1/2 + s) / 4 * +-row[k], with a 4-bit
/// scale s per 16 weights. Of the eight signs of a row seven are stored.
/// 74 bytes per 256 weights = 2.3125 bits per weight. Source: GGUF specification, tensor type 17.
struct IQ2_XS {
  static constexpr QuantInfo info{
      .name = "IQ2_XS", .dtype = DType{17}, .block_weights = 256, .block_bytes = 74};
  struct Block {
    Half scale;
    std::uint16_t rows[32];  // 9 bits of row, 7 sign bits
    std::uint8_t scales[8];  // two nibbles per 32 weights
  };

  static void decode(const Block& block, std::span<float, 256> weights);
};

static_assert(HasOwnDecode<IQ2_XS>);

}  // namespace hearth::quant
