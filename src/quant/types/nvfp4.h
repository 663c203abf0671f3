#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "quant/quant_type.h"
#include "quant/types/mxfp4.h"
#include "quant/types/unpack.h"

namespace hearth::quant {

/// Half of every unsigned E4M3 value (bias 7): the scales of NVFP4, halved because doubled_e2m1 is
/// doubled. The sign bit is ignored; 0x7f, the format's NaN, counts as 0.
inline constexpr std::array<float, 256> halved_e4m3 = [] {
  std::array<float, 256> values{};
  for (std::uint32_t code = 0; code < 256; ++code) {
    const std::uint32_t exponent = (code >> 3) & 15;
    const std::uint32_t mantissa = code & 7;
    const float subnormal = static_cast<float>(mantissa) * 0x1p-10f;
    const float normal = std::bit_cast<float>((exponent - 8 + 127) << 23 | mantissa << 20);
    values[code] = code == 0x7f ? 0.0f : exponent == 0 ? subnormal : normal;
  }
  return values;
}();

/// NVFP4: 64 FP4 weights in groups of 16, each with an E4M3 scale;
/// weight = halved_e4m3[scale] * doubled_e2m1[q]. A factor for the whole tensor, where a model has
/// one, is a tensor of its own.
/// 36 bytes per 64 weights = 4.5 bits per weight. Source: GGUF specification, tensor type 40.
struct NVFP4 {
  static constexpr QuantInfo info{
      .name = "NVFP4", .dtype = DType{40}, .block_weights = 64, .block_bytes = 36};
  static constexpr IntegerLayout integers{
      .unit = 16, .sub = 16, .activation_block = 32, .has_offset = false};
  struct Block {
    std::uint8_t scales[4];
    std::uint8_t q[32];  // per group 8 bytes; low nibbles: weights 0-7; high nibbles: 8-15
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    for (std::size_t group = 0; group < 4; ++group) {
      out.scales[group] = halved_e4m3[block.scales[group]];
      out.sub_scales[group] = 1;
      look_up_nibbles<8>(&block.q[8 * group], doubled_e2m1, &out.codes[16 * group]);
    }
  }
};

static_assert(HasIntegerForm<NVFP4>);

}  // namespace hearth::quant
