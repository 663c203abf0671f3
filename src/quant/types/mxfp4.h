#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "quant/quant_type.h"
#include "quant/types/unpack.h"

namespace hearth::quant {

/// FP4 (E2M1) values by code, doubled so that they are integers. Source: OCP Microscaling Formats
/// (MX) specification 1.0, table 5.
inline constexpr std::array<std::int8_t, 16> doubled_e2m1{0, 1,  2,  3,  4,  6,  8,  12,
                                                          0, -1, -2, -3, -4, -6, -8, -12};

/// MXFP4: 32 FP4 weights share a power of two; weight = 2^(exponent - 128) * doubled_e2m1[q].
/// 17 bytes per 32 weights = 4.25 bits per weight. Source: GGUF specification, tensor type 39.
struct MXFP4 {
  static constexpr QuantInfo info{
      .name = "MXFP4", .dtype = DType{39}, .block_weights = 32, .block_bytes = 17};
  static constexpr IntegerLayout integers{
      .unit = 32, .sub = 32, .activation_block = 32, .has_offset = false};
  struct Block {
    std::uint8_t exponent;
    std::uint8_t q[16];  // low nibbles: weights 0-15; high nibbles: 16-31
  };

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    out.scales[0] = power(block.exponent);
    out.sub_scales[0] = out.sub_scales[1] = 1;
    look_up_nibbles<16>(block.q, doubled_e2m1, out.codes.data());
  }

  /// 2^(exponent - 128). The first two are subnormal, which the exponent field cannot express.
  static float power(std::uint32_t exponent) {
    const std::uint32_t subnormal = 0x00200000u << (exponent & 1);
    const std::uint32_t normal = (exponent - 1) << 23;
    return std::bit_cast<float>(exponent < 2 ? subnormal : normal);
  }
};

static_assert(HasIntegerForm<MXFP4>);

}  // namespace hearth::quant
