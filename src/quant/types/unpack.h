#pragma once
/// Codes of a few bits to bytes: the steps that several formats share.
///
/// They use the vector extension of GCC and clang, which both lower for any processor. GCC 12 at
/// -O3 unrolls plain loops of 16 bytes and then finds no vectors in them (ten times slower), and
/// codes stored as 64-bit words stall the vector loads that follow.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace hearth::quant {

using Bytes16 [[gnu::vector_size(16)]] = std::uint8_t;

/// codes[i] = low nibble of packed[i] - bias, codes[n + i] = high nibble of packed[i] - bias.
template <std::size_t n>
[[gnu::always_inline]] inline void unpack_nibbles(const std::uint8_t* packed, std::uint8_t bias,
                                                  std::int8_t* codes) {
  for (std::size_t i = 0; i < n; i += 16) {
    const auto nibbles = load<Bytes16>(packed, i);
    store(codes, (nibbles & 15) - bias, i);
    store(codes, (nibbles >> 4) - bias, n + i);
  }
}

/// Byte k of the result is 16 where bit k of `bits`, little-endian, is set, and 0 elsewhere.
[[gnu::always_inline]] inline Bytes16 fifth_bits(const std::uint8_t* bits) {
  using Words2 [[gnu::vector_size(16)]] = std::uint64_t;
  constexpr std::uint64_t every_byte = 0x0101010101010101u;
  constexpr Bytes16 bit_of_byte{1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto copies = std::bit_cast<Bytes16>(Words2{bits[0] * every_byte, bits[1] * every_byte});
  const auto is_set = std::bit_cast<Bytes16>((copies & bit_of_byte) == bit_of_byte);
  return is_set & 16;
}

/// 32 codes of five bits: nibbles as in unpack_nibbles<16>, and bit i of the little-endian word
/// `high` as the fifth bit of code i. codes[i] = five bits - bias.
[[gnu::always_inline]] inline void unpack_five_bits(const std::uint8_t* packed,
                                                    const std::uint8_t* high, std::uint8_t bias,
                                                    std::int8_t* codes) {
  const auto nibbles = load<Bytes16>(packed);
  store(codes, ((nibbles & 15) | fifth_bits(high)) - bias, 0);
  store(codes, ((nibbles >> 4) | fifth_bits(high + 2)) - bias, 16);
}

/// Nibbles as indices: codes[i] = values[low nibble of packed[i]], codes[n + i] the same with the
/// high nibble.
template <std::size_t n>
[[gnu::always_inline]] inline void look_up_nibbles(const std::uint8_t* packed,
                                                   const std::array<std::int8_t, 16>& values,
                                                   std::int8_t* codes) {
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = values[packed[i] & 15];
    codes[n + i] = values[packed[i] >> 4];
  }
}

}  // namespace hearth::quant
