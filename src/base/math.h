#pragma once
/// Elementary functions with the same bits on every machine: explicit fused multiply-adds, no libm.
/// All are branch-free so that loops over them vectorise.

#include <bit>
#include <cmath>
#include <cstdint>

namespace hearth {

/// exp(x), within 2 ulp (tested for every float in range). Arguments are clamped to [-87.3, 88.7],
/// so the result is always a normal number; NaN stays NaN.
[[nodiscard]] inline float canonical_exp(float x) {
  constexpr float log2_e = 0x1.715476p+0f;
  constexpr float ln2_high = 0x1.62e400p-1f;  // 15 bits, so that n * ln2_high is exact
  constexpr float ln2_low = 0x1.7f7d1cp-20f;  // ln 2 - ln2_high
  constexpr float round_magic = 0x1.8p+23f;   // adding it rounds to an integer, to nearest even
  float clamped = x < -87.3f ? -87.3f : x;
  clamped = clamped > 88.7f ? 88.7f : clamped;

  // x = n ln 2 + r with |r| <= ln 2 / 2
  const float shifted = std::fma(clamped, log2_e, round_magic);
  const float n = shifted - round_magic;
  const float r = std::fma(n, -ln2_low, std::fma(n, -ln2_high, clamped));

  // e^r = 1 + r + r^2 q(r); q is a weighted minimax fit of degree 4 (relative error 0.05 ulp before
  // rounding)
  float q = 0x1.6a23d0p-10f;
  q = std::fma(q, r, 0x1.123a20p-7f);
  q = std::fma(q, r, 0x1.5558f2p-5f);
  q = std::fma(q, r, 0x1.555492p-3f);
  q = std::fma(q, r, 0x1.fffffcp-2f);
  const float power = std::fma(std::fma(q, r, 1.0f), r, 1.0f);

  // times 2^n: n sits in the low bits of `shifted`, and adding it to the exponent cannot leave the
  // normal range
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  const float scaled = std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) + exponent);
  return x != x ? x : scaled;
}

/// 1 / (1 + exp(-x))
[[nodiscard]] inline float canonical_sigmoid(float x) {
  return 1.0f / (1.0f + canonical_exp(-x));
}

/// x / (1 + exp(-x))
[[nodiscard]] inline float canonical_silu(float x) {
  return x / (1.0f + canonical_exp(-x));
}

/// GELU in its tanh form, 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), written as x
/// / (1 + exp(-2u)).
[[nodiscard]] inline float canonical_gelu_tanh(float x) {
  constexpr float two_sqrt_2_over_pi = 0x1.988454p+0f;
  const float u2 = two_sqrt_2_over_pi * std::fma(0.044715f * x * x, x, x);
  return x / (1.0f + canonical_exp(-u2));
}

/// tanh(x) = (1 - e) / (1 + e) with e = exp(-2x). Absolute error below 5 * 2^-24: three roundings
/// of 2^-24, and 2 ulp of e, of which at most half reaches the result.
[[nodiscard]] inline float canonical_tanh(float x) {
  const float e = canonical_exp(-2.0f * x);
  return (1.0f - e) / (1.0f + e);
}

/// log(1 + e^x), and x itself above 20, where they are the same float. Within 2 ulp.
[[nodiscard]] inline float canonical_softplus(float x) {
  constexpr float ln2_high = 0x1.62e400p-1f;  // 15 bits, so that n * ln2_high is exact
  constexpr float ln2_low = 0x1.7f7d1cp-20f;  // ln 2 - ln2_high
  constexpr std::uint32_t sqrt_half_bits = 0x3f3504f3;
  const float y = canonical_exp(x < 20.0f ? x : 20.0f);
  // 1 + y = 2^n m with m in [sqrt(1/2), sqrt(2)), and f = m - 1 with what the sum lost to rounding;
  // for n = 0 that is y, however small.
  const float sum = 1.0f + y;
  const float lost = y - (sum - 1.0f);
  const std::uint32_t n_shifted =
      (std::bit_cast<std::uint32_t>(sum) - sqrt_half_bits) & 0xff800000u;
  const auto n = static_cast<float>(n_shifted >> 23);
  const auto scale = std::bit_cast<float>(0x3f800000u - n_shifted);  // 2^-n
  const float f = n_shifted == 0 ? y : std::fma(sum, scale, -1.0f) + lost * scale;
  // log(1 + f) = 2 artanh(s) = f - (f^2/2 - s (f^2/2 + r(s^2))), |s| < 0.172; the first term left
  // out of r is below 2^-28 of the whole.
  const float s = f / (2.0f + f);
  const float s2 = s * s;
  float r = std::fma(2.0f / 9.0f, s2, 2.0f / 7.0f);
  r = std::fma(r, s2, 2.0f / 5.0f);
  r = std::fma(r, s2, 2.0f / 3.0f);
  r *= s2;
  const float half_square = 0.5f * f * f;
  const float correction = std::fma(s, half_square + r, n * ln2_low);
  const float log = std::fma(n, ln2_high, f - (half_square - correction));
  return x > 20.0f || x != x ? x : log;
}

struct SinCos {
  float sin;
  float cos;
};

/// Sine and cosine of an angle in radians, |angle| < 2^30, computed in double and rounded once:
/// within 1 ulp.
[[nodiscard]] inline SinCos canonical_sincos(double angle) {
  constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
  // pi/2 in two parts of 33 and 53 bits: n * high is exact for n below 2^20, and the rest is fused.
  constexpr double pi_2_high = 0x1.921fb544p+0;
  constexpr double pi_2_low = 0x1.0b4611a626331p-34;
  constexpr double round_magic = 0x1.8p+52;
  const double shifted = std::fma(angle, two_over_pi, round_magic);
  const double n = shifted - round_magic;
  const double r = std::fma(n, -pi_2_low, std::fma(n, -pi_2_high, angle));  // |r| <= pi/4

  // Taylor series; the first term left out is below 2^-55 on |r| <= pi/4.
  const double r2 = r * r;
  double s = -1.0 / 1307674368000.0;
  s = std::fma(s, r2, 1.0 / 6227020800.0);
  s = std::fma(s, r2, -1.0 / 39916800.0);
  s = std::fma(s, r2, 1.0 / 362880.0);
  s = std::fma(s, r2, -1.0 / 5040.0);
  s = std::fma(s, r2, 1.0 / 120.0);
  s = std::fma(s, r2, -1.0 / 6.0);
  const double sine = std::fma(s * r2, r, r);
  double c = 1.0 / 20922789888000.0;
  c = std::fma(c, r2, -1.0 / 87178291200.0);
  c = std::fma(c, r2, 1.0 / 479001600.0);
  c = std::fma(c, r2, -1.0 / 3628800.0);
  c = std::fma(c, r2, 1.0 / 40320.0);
  c = std::fma(c, r2, -1.0 / 720.0);
  c = std::fma(c, r2, 1.0 / 24.0);
  c = std::fma(c, r2, -0.5);
  const double cosine = std::fma(c, r2, 1.0);

  const auto quadrant = std::bit_cast<std::uint64_t>(shifted) & 3u;
  const double sin_part = (quadrant & 1u) != 0 ? cosine : sine;
  const double cos_part = (quadrant & 1u) != 0 ? sine : cosine;
  return {static_cast<float>((quadrant & 2u) != 0 ? -sin_part : sin_part),
          static_cast<float>(((quadrant + 1u) & 2u) != 0 ? -cos_part : cos_part)};
}

}  // namespace hearth
