#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// IQ2_S: 256 weights, 8 per codebook row; weight = scale * (1/2 + s) / 4 * +-row[k], with a 4-bit
/// scale s per 16 weights.
/// 82 bytes per 256 weights = 2.5625 bits per weight. Source: GGUF specification, tensor type 22.
struct IQ2_S {
  static constexpr QuantInfo info{
      .name = "IQ2_S", .dtype = DType{22}, .block_weights = 256, .block_bytes = 82};
  struct Block {
    Half scale;
    std::uint8_t rows_low[32];
    std::uint8_t signs[32];
    std::uint8_t rows_high[8];  // two bits per row
    std::uint8_t scales[8];     // two nibbles per 32 weights
  };

  static void decode(const Block& block, std::span<float, 256> weights);
};

static_assert(HasOwnDecode<IQ2_S>);

}  // namespace hearth::quant
