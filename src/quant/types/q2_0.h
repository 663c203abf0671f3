#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// Q2_0: 64 weights share one f16 scale; weight = scale * (q - 1), q of two bits.
/// 18 bytes per 64 weights = 2.25 bits per weight. Source: GGUF specification, tensor type 42.
struct Q2_0 {
  static constexpr QuantInfo info{
      .name = "Q2_0", .dtype = DType{42}, .block_weights = 64, .block_bytes = 18};
  struct Block {
    Half scale;
    std::uint8_t q[16];  // four weights per byte, lowest bits first
  };

  static void decode(const Block& block, std::span<float, 64> weights);
};

static_assert(HasOwnDecode<Q2_0>);

}  // namespace hearth::quant
