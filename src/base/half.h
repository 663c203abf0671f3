#pragma once
/// 16-bit floats. Conversions are exact or round to nearest even; subnormals are kept (real models
/// use them).

#include <bit>
#include <cstdint>

namespace hearth {

/// IEEE binary16, as stored.
struct Half {
  std::uint16_t bits;
};

/// The upper half of a binary32, as stored.
struct BFloat16 {
  std::uint16_t bits;
};

[[nodiscard]] constexpr float to_float(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

/// Without branches, so that loops over it become vector code, and without arithmetic on subnormal
/// floats, which is slow on many processors: most scales of a model are subnormal halves.
[[nodiscard]] constexpr float to_float(Half x) {
  constexpr std::uint32_t exponent_shift = 112u << 23;  // from bias 15 to bias 127
  const std::uint32_t sign = (x.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = (x.bits & 0x7fffu) << 13;
  // Infinity and NaN: the exponent 31 becomes 255, the payload stays.
  const std::uint32_t top_shift = magnitude >= (0x7c00u << 13) ? exponent_shift : 0u;
  const std::uint32_t normal = magnitude + exponent_shift + top_shift;
  // Zero and subnormal: 2^-14 * (1.mantissa) - 2^-14, exact.
  const float lifted = std::bit_cast<float>(magnitude + exponent_shift + (1u << 23));
  const auto subnormal = std::bit_cast<std::uint32_t>(lifted - 0x1p-14f);
  return std::bit_cast<float>(sign | (magnitude < (0x0400u << 13) ? subnormal : normal));
}

[[nodiscard]] constexpr BFloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {  // NaN: keep sign and top payload, make it quiet
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

[[nodiscard]] constexpr Half to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto signed_half = [sign](std::uint32_t rest) {
    return Half{static_cast<std::uint16_t>(sign | rest)};
  };
  if (magnitude > 0x7f800000u) {
    return signed_half(0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) {  // at least 65520: rounds to infinity
    return signed_half(0x7c00u);
  }
  if (magnitude < 0x38800000u) {  // below 2^-14: the float addition rounds to a multiple of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return signed_half(std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return signed_half((magnitude - (112u << 23) + 0xfffu + odd) >> 13);
}

}  // namespace hearth
