#pragma once
/// The codebooks of the IQ1, IQ2 and IQ3 types: a code selects a row of 4 or 8 values at once.
/// Rows are packed into 16 bits, the first value in the lowest bits, and sorted. The tables are
/// generated from the `gguf` Python package by tools/make_iq_grids.py.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::quant {

extern const std::array<std::uint16_t, 256> iq2_xxs_grid;
extern const std::array<std::uint16_t, 512> iq2_xs_grid;
extern const std::array<std::uint16_t, 1024> iq2_s_grid;
extern const std::array<std::uint16_t, 256> iq3_xxs_grid;
extern const std::array<std::uint16_t, 512> iq3_s_grid;
extern const std::array<std::uint16_t, 2048> iq1_grid;

/// What the indices of a row stand for.
inline constexpr std::array<std::int8_t, 4> iq1_values{-1, 0, 1, 0};  // index 3 does not occur
inline constexpr std::array<std::int8_t, 4> iq2_values{8, 25, 43, 0};
inline constexpr std::array<std::int8_t, 8> iq3_xxs_values{4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr std::array<std::int8_t, 8> iq3_s_values{1, 3, 5, 7, 9, 11, 13, 15};

/// The values of a row: 8 with 2-bit indices or 4 with 3-bit indices.
template <std::size_t n_values>
[[nodiscard]] constexpr auto unpack_grid_row(std::uint16_t row,
                                             const std::array<std::int8_t, n_values>& values) {
  constexpr int bits = std::bit_width(n_values - 1);
  constexpr int length = bits == 2 ? 8 : 4;
  std::array<float, length> unpacked{};
  for (std::size_t k = 0; k < length; ++k) {
    unpacked[k] = values[(row >> (bits * k)) & (n_values - 1)];
  }
  return unpacked;
}

/// Eight sign bits from seven: the last one makes their number even.
[[nodiscard]] constexpr std::uint8_t even_signs(std::uint32_t seven_bits) {
  const auto parity = static_cast<std::uint32_t>(std::popcount(seven_bits) & 1);
  return static_cast<std::uint8_t>(seven_bits | parity << 7);
}

/// weights[k] = scale * magnitudes[k], negated where bit k of `signs` is set.
template <std::size_t length>
constexpr void write_signed(float scale, const std::array<float, length>& magnitudes, int signs,
                            float* weights) {
  for (std::size_t k = 0; k < length; ++k) {
    const float weight = scale * magnitudes[k];
    weights[k] = (signs >> k) & 1 ? -weight : weight;
  }
}

}  // namespace hearth::quant
