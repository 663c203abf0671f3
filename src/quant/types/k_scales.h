#pragma once
/// The twelve bytes in which Q4_K and Q5_K pack eight scales and eight mins of six bits.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "quant/integer_form.h"

namespace hearth::quant {

/// Bytes 0-3: scales 0-3, and in their top two bits the high bits of scales 4-7. Bytes 4-7: the
/// same for the mins. Bytes 8-11: low nibbles of scales 4-7 | low nibbles of mins 4-7.
/// Writes each of the eight twice, since a sub-block of 32 weights is two groups of 16.
inline void unpack_k_scales(const std::uint8_t* packed, IntegerBlock& out) {
  const auto scale_word = load<std::uint32_t>(packed, 0);
  const auto min_word = load<std::uint32_t>(packed, 4);
  const auto low_word = load<std::uint32_t>(packed, 8);
  const auto high_bits = [](std::uint32_t word) { return ((word >> 6) & 0x03030303u) << 4; };
  std::array<std::uint8_t, 8> scales;
  std::array<std::uint8_t, 8> mins;
  store(scales.data(), scale_word & 0x3f3f3f3fu, 0);
  store(scales.data(), (low_word & 0x0f0f0f0fu) | high_bits(scale_word), 4);
  store(mins.data(), min_word & 0x3f3f3f3fu, 0);
  store(mins.data(), ((low_word >> 4) & 0x0f0f0f0fu) | high_bits(min_word), 4);
  for (std::size_t i = 0; i < 8; ++i) {
    out.sub_scales[2 * i] = scales[i];
    out.sub_scales[2 * i + 1] = scales[i];
    out.sub_offsets[2 * i] = mins[i];
    out.sub_offsets[2 * i + 1] = mins[i];
  }
}

}  // namespace hearth::quant
