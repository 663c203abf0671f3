#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// IQ3_S: 256 weights, 4 per codebook row; weight = scale * (1 + 2 s) * +-row[k], with a 4-bit
/// scale s per 32 weights. 110 bytes per 256 weights = 3.4375 bits per weight. Source: GGUF
/// specification, tensor type 21.
struct IQ3_S {
  static constexpr QuantInfo info{
      .name = "IQ3_S", .dtype = DType{21}, .block_weights = 256, .block_bytes = 110};
  struct Block {
    Half scale;
    std::uint8_t rows_low[64];
    std::uint8_t rows_high[8];  // one bit per row
    std::uint8_t signs[32];
    std::uint8_t scales[4];  // a nibble per 32 weights
  };

  static void decode(const Block& block, std::span<float, 256> weights);
};

static_assert(HasOwnDecode<IQ3_S>);

}  // namespace hearth::quant
