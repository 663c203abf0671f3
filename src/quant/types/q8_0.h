#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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
};

static_assert(HasIntegerForm<Q8_0>);

}  // namespace hearth::quant
