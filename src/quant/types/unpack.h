#pragma once
/// Codes of a few bits to bytes: the steps that several formats share. All loops have fixed trip
/// counts and no branches, so that compilers turn them into vector code.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace hearth::quant {

/// codes[i] = low nibble of packed[i] - bias, codes[n + i] = high nibble of packed[i] - bias.
template <int n>
inline void unpack_nibbles(const std::uint8_t* packed, int bias, std::int8_t* codes) {
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = static_cast<std::int8_t>((packed[i] & 15) - bias);
    codes[n + i] = static_cast<std::int8_t>((packed[i] >> 4) - bias);
  }
}

/// The same with the nibbles as indices: codes[i] = values[nibble i].
template <int n>
inline void look_up_nibbles(const std::uint8_t* packed, const std::array<std::int8_t, 16>& values,
                            std::int8_t* codes) {
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = values[packed[i] & 15];
    codes[n + i] = values[packed[i] >> 4];
  }
}

/// Byte k of the result is bit k of `bits`: 0 or 1.
[[nodiscard]] constexpr std::uint64_t spread_bits(std::uint8_t bits) {
  const std::uint64_t copies = bits * 0x0101010101010101u;
  const std::uint64_t picked = copies & 0x8040201008040201u;  // bit k in byte k
  return ((picked + 0x7f7f7f7f7f7f7f7fu) >> 7) & 0x0101010101010101u;
}

/// 32 codes of five bits: nibbles as in unpack_nibbles<16>, and bit i of the little-endian word
/// `high` as the fifth bit of code i. codes[i] = five bits - bias.
inline void unpack_five_bits(const std::uint8_t* packed, const std::uint8_t* high, int bias,
                             std::int8_t* codes) {
  std::array<std::uint8_t, 32> fifth;
  for (std::size_t byte = 0; byte < 4; ++byte) {
    store(fifth.data(), spread_bits(high[byte]) << 4, 8 * byte);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    codes[i] = static_cast<std::int8_t>(((packed[i] & 15) | fifth[i]) - bias);
    codes[16 + i] = static_cast<std::int8_t>(((packed[i] >> 4) | fifth[16 + i]) - bias);
  }
}

}  // namespace hearth::quant
