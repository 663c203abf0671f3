#pragma once
/// Activations as int8, the other operand of the integer dot products of quant/integer_form.h.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>

namespace hearth::quant {

/// Values whose sum is kept beside the codes, for formats with an offset term.
inline constexpr int activation_sum_group = 16;

/// Magnitudes below this count as zero: 127 / max|x| has to stay finite.
inline constexpr float smallest_activation = 0x1p-120f;

/// One row of quantized activations, written into storage the caller provides.
struct ActivationRow {
  std::span<std::int8_t> codes;  // [n], in -127...127
  std::span<float> scales;       // [n / block]
  std::span<std::int16_t> sums;  // [n / 16], sums of 16 codes
};

/// Quantizes x [n] in blocks of `block` values (256 or 32; n is a multiple of it):
/// scale = max|x| / 127, code = x * (127 / max|x|) rounded to nearest even and clamped to +-127.
/// A block below smallest_activation throughout has scale 0 and codes 0. A block with a NaN or an
/// infinity has scale NaN and codes 0, so that the fault reaches the logits instead of turning into
/// a plausible number.
void quantize_activations(std::span<const float> x, int block, ActivationRow row);

/// Adding and subtracting 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer, ties to even: at
/// that magnitude floats are integers.
inline constexpr float rounding_shift = 12582912.0f;

/// Bits of the largest magnitude. Magnitudes of floats order as their bits do, and infinities and
/// NaNs are above all numbers.
template <int block>
[[nodiscard]] inline std::uint32_t largest_magnitude_bits(const float* x) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < block; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu);
  }
  return largest;
}

struct BlockScale {
  float scale;
  float inverse;
};

[[nodiscard]] inline BlockScale scale_of(std::uint32_t magnitude_bits) {
  constexpr std::uint32_t infinity = 0x7f800000;
  if (magnitude_bits >= infinity) {
    return {.scale = std::numeric_limits<float>::quiet_NaN(), .inverse = 0.0f};
  }
  const auto magnitude = std::bit_cast<float>(magnitude_bits);
  if (magnitude < smallest_activation) {
    return {.scale = 0.0f, .inverse = 0.0f};
  }
  return {.scale = magnitude / 127.0f, .inverse = 127.0f / magnitude};
}

/// Blocks are worked on in local arrays, which no pointer can alias, so that the loops become
/// vector code.
template <int block>
inline void quantize_block(const float* x, std::int8_t* codes_out, float& scale_out,
                           std::int16_t* sums_out) {
  const BlockScale scale = scale_of(largest_magnitude_bits<block>(x));
  scale_out = scale.scale;
  if (scale.inverse == 0.0f) {  // not only faster: 0 * NaN is no code
    std::fill_n(codes_out, block, std::int8_t{0});
    std::fill_n(sums_out, block / activation_sum_group, std::int16_t{0});
    return;
  }
  std::array<std::int8_t, block> codes;
  for (std::size_t i = 0; i < block; ++i) {
    // At most 127 * (1 + 2^-22) before rounding, so the clamp to +-127 comes for free.
    const float rounded = (x[i] * scale.inverse + rounding_shift) - rounding_shift;
    codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(rounded));
  }
  std::copy(codes.begin(), codes.end(), codes_out);
  for (std::size_t group = 0; group < block / activation_sum_group; ++group) {
    int sum = 0;
    for (std::size_t i = 0; i < activation_sum_group; ++i) {
      sum += codes[group * activation_sum_group + i];
    }
    sums_out[group] = static_cast<std::int16_t>(sum);
  }
}

}  // namespace hearth::quant
