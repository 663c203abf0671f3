#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// IQ1_S: 256 weights, 8 per codebook row; weight = scale * (2 s + 1) * (row[k] +- 1/8), with a
/// 3-bit scale s and one shift of +-1/8 per 32 weights. 50 bytes per 256 weights = 1.5625 bits per
/// weight. Source: GGUF specification, tensor type 19.
struct IQ1_S {
  static constexpr QuantInfo info{
      .name = "IQ1_S", .dtype = DType{19}, .block_weights = 256, .block_bytes = 50};
  struct Block {
    Half scale;
    std::uint8_t rows_low[32];
    std::uint16_t groups[8];  // 4 times 3 high bits of a row, 3 bits of scale, sign of the shift
  };

  static void decode(const Block& block, std::span<float, 256> weights);
};

static_assert(HasOwnDecode<IQ1_S>);

}  // namespace hearth::quant
