#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// IQ1_M: 256 weights, 8 per codebook row; weight = scale * (2 s + 1) * (row[k] +- 1/8), with a
/// 3-bit scale s per 16 weights and one shift of +-1/8 per row. 56 bytes per 256 weights = 1.75
/// bits per weight. Source: GGUF specification, tensor type 29.
struct IQ1_M {
  static constexpr QuantInfo info{
      .name = "IQ1_M", .dtype = DType{29}, .block_weights = 256, .block_bytes = 56};
  struct Block {
    std::uint8_t rows_low[32];
    std::uint8_t rows_high[16];  // a nibble per row: 3 high bits and the sign of the shift
    std::uint16_t scales[4];     // per 64 weights 4 times 3 bits; top nibbles: the f16 scale
  };

  static void decode(const Block& block, std::span<float, 256> weights);
};

static_assert(HasOwnDecode<IQ1_M>);

}  // namespace hearth::quant
