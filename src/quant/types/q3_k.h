#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// Q3_K: 256 weights in groups of 16; weight = scale * s * q, with a 6-bit scale s of -32...31 per
/// group and codes q of -4...3.
/// 110 bytes per 256 weights = 3.4375 bits per weight. Source: GGUF specification, tensor type 11.
struct Q3_K {
  static constexpr QuantInfo info{
      .name = "Q3_K", .dtype = DType{11}, .block_weights = 256, .block_bytes = 110};
  static constexpr IntegerLayout integers{
      .unit = 256, .sub = 16, .activation_block = 256, .has_offset = false};
  struct Block {
    std::uint8_t high[32];    // bit g of byte l is the high bit of weight 32 g + l
    std::uint8_t q[64];       // low two bits, as in Q2_K
    std::uint8_t scales[12];  // bytes 0-7: low nibbles of scales 0-7 | 8-15; 8-11: high two bits
    Half scale;
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = to_float(block.scale);
    unpack_scales(block.scales, out);
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t j = 0; j < 4; ++j) {
        const std::size_t g = 4 * half + j;
        for (std::size_t l = 0; l < 32; ++l) {
          const int low = (block.q[32 * half + l] >> (2 * j)) & 3;
          const int high = (block.high[l] >> g) & 1;
          out.codes[32 * g + l] = static_cast<std::int8_t>((low | high << 2) - 4);
        }
      }
    }
  }

 private:
  [[gnu::always_inline]] static void unpack_scales(const std::uint8_t* packed, IntegerBlock& out) {
    const auto low_0 = load<std::uint32_t>(packed, 0);
    const auto low_4 = load<std::uint32_t>(packed, 4);
    const auto high = load<std::uint32_t>(packed, 8);
    const auto merge = [](std::uint32_t nibbles, std::uint32_t bits) {
      return (nibbles & 0x0f0f0f0fu) | (bits & 0x03030303u) << 4;
    };
    std::array<std::uint8_t, 16> scales;
    store(scales.data(), merge(low_0, high), 0);
    store(scales.data(), merge(low_4, high >> 2), 4);
    store(scales.data(), merge(low_0 >> 4, high >> 4), 8);
    store(scales.data(), merge(low_4 >> 4, high >> 6), 12);
    for (std::size_t i = 0; i < 16; ++i) {
      out.sub_scales[i] = static_cast<std::int16_t>(scales[i] - 32);
    }
  }
};

static_assert(HasIntegerForm<Q3_K>);

}  // namespace hearth::quant
