#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// Q1_0: 128 weights share one f16 scale; weight = scale where the bit is set, else -scale.
/// 18 bytes per 128 weights = 1.125 bits per weight. Source: GGUF specification, tensor type 41.
struct Q1_0 {
  static constexpr QuantInfo info{
      .name = "Q1_0", .dtype = DType{41}, .block_weights = 128, .block_bytes = 18};
  struct Block {
    Half scale;
    std::uint8_t bits[16];  // lowest bit first
  };

  static void decode(const Block& block, std::span<float, 128> weights);
};

static_assert(HasOwnDecode<Q1_0>);

}  // namespace hearth::quant
