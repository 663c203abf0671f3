#pragma once
/// The twelve bytes in which Q4_K and Q5_K pack eight scales and eight mins of six bits.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "quant/integer_form.h"

namespace hearth::quant {

/// Bytes 0-3: scales 0-3, and in their top two bits the high bits of scales 4-7. Bytes 4-7: the
/// same for the mins. Bytes 8-11: low nibbles of scales 4-7 | low nibbles of mins 4-7.
/// Writes each of the eight twice, since a sub-block of 32 weights is two groups of 16.
[[gnu::always_inline]] inline void unpack_k_scales(const std::uint8_t* packed, IntegerBlock& out) {
  const auto scale_word = load<std::uint32_t>(packed, 0);
  const auto min_word = load<std::uint32_t>(packed, 4);
  const auto low_word = load<std::uint32_t>(packed, 8);
  const auto high_bits = [](std::uint32_t word) { return ((word >> 6) & 0x03030303u) << 4; };
  const auto join = [](std::uint32_t first, std::uint32_t second) {
    return std::bit_cast<std::array<std::uint8_t, 8>>(first | std::uint64_t{second} << 32);
  };
  constexpr std::uint32_t low_six = 0x3f3f3f3fu;
  constexpr std::uint32_t low_four = 0x0f0f0f0fu;
  const auto scales = join(scale_word & low_six, (low_word & low_four) | high_bits(scale_word));
  const auto mins = join(min_word & low_six, ((low_word >> 4) & low_four) | high_bits(min_word));
  for (std::size_t i = 0; i < 8; ++i) {
    out.sub_scales[2 * i] = scales[i];
    out.sub_scales[2 * i + 1] = scales[i];
    out.sub_offsets[2 * i] = mins[i];
    out.sub_offsets[2 * i + 1] = mins[i];
  }
}

}  // namespace hearth::quant
