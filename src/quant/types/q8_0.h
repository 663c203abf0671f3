#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// Q8_0: 32 weights share one f16 scale; weight = scale * q.
/// 34 bytes per 32 weights = 8.5 bits per weight. Source: GGUF specification, tensor type 8.
struct Q8_0 {
  static constexpr QuantInfo info{
      .name = "Q8_0", .dtype = DType{8}, .block_weights = 32, .block_bytes = 34};
  static constexpr IntegerLayout integers{
      .unit = 32, .sub = 32, .activation_block = 32, .has_offset = false};
  struct Block {
    Half scale;
    std::int8_t q[32];
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    out.sub_scales[0] = out.sub_scales[1] = 1;
    std::memcpy(out.codes.data(), block.q, sizeof block.q);
  }

  /// scale = max|w| / 127; halves of a step round away from zero. Bit-equal with the `gguf` Python
  /// package; scales below the smallest normal float, which no f16 holds, count as zero.
  static void encode(std::span<const float, 32> weights, Block& block) {
    float largest = 0;
    for (const float weight : weights) {
      largest = std::max(largest, std::abs(weight));
    }
    const float scale = largest / 127;
    const float inverse = scale < 0x1p-126f ? 0 : 1 / scale;
    block.scale = to_half(scale);
    std::ranges::transform(weights, block.q, [inverse](float weight) {
      return static_cast<std::int8_t>(std::round(weight * inverse));
    });
  }
};

static_assert(HasIntegerForm<Q8_0>);

}  // namespace hearth::quant
