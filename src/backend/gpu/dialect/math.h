#pragma once
/// The canonical elementary functions of base/math.h: the same operations in the same order, so the
/// same bits.

namespace hearth::backend::gpu {

#define LN2_HIGH 0.693145752f   // 15 bits, so that n times it is exact
#define LN2_LOW 1.42860677e-6f  // ln 2 - LN2_HIGH

/// By bits, because a compiler may take comparisons of a number with itself for true.
DEVICE_FN bool is_nan_f32(f32 x) {
  return (bits_of_f32(x) & 0x7fffffffu) > 0x7f800000u;
}

/// exp(x), within 2 ulp; arguments are clamped to [-87.3, 88.7], NaN stays NaN.
DEVICE_FN f32 exp_f32(f32 x) {
  const f32 round_magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  f32 clamped = x < -87.3f ? -87.3f : x;
  clamped = clamped > 88.7f ? 88.7f : clamped;
  // x = n ln 2 + r with |r| <= ln 2 / 2
  const f32 shifted = fma_f32(clamped, 1.44269502f, round_magic);
  const f32 n = shifted - round_magic;
  const f32 r = fma_f32(n, -LN2_LOW, fma_f32(n, -LN2_HIGH, clamped));
  // e^r = 1 + r + r^2 q(r)
  f32 q = fma_f32(0.00138145406f, r, 0.00836874545f);
  q = fma_f32(q, r, 0.041668389f);
  q = fma_f32(q, r, 0.166665211f);
  q = fma_f32(q, r, 0.49999994f);
  const f32 power = fma_f32(fma_f32(q, r, 1.0f), r, 1.0f);
  const f32 scaled = f32_of_bits(bits_of_f32(power) + (bits_of_f32(shifted) << 23));
  return is_nan_f32(x) ? x : scaled;
}

/// 1 / (1 + e^-x)
DEVICE_FN f32 sigmoid_f32(f32 x) {
  return 1.0f / (1.0f + exp_f32(-x));
}

/// x / (1 + e^-x)
DEVICE_FN f32 silu_f32(f32 x) {
  return x / (1.0f + exp_f32(-x));
}

/// GELU in its tanh form, written as x / (1 + e^-2u) with u = sqrt(2 / pi) (x + 0.044715 x^3).
DEVICE_FN f32 gelu_f32(f32 x) {
  const f32 u2 = 1.59576917f * fma_f32(0.044715f * x * x, x, x);
  return x / (1.0f + exp_f32(-u2));
}

/// (1 - e) / (1 + e) with e = e^-2x
DEVICE_FN f32 tanh_f32(f32 x) {
  const f32 e = exp_f32(-2.0f * x);
  return (1.0f - e) / (1.0f + e);
}

/// `kind` is graph::ActivationKind as a number: SiLU, GELU, sigmoid.
DEVICE_FN f32 activate_f32(u32 kind, f32 x) {
  if (kind == 0u) {
    return silu_f32(x);
  }
  return kind == 1u ? gelu_f32(x) : sigmoid_f32(x);
}

/// log(1 + e^x), and x itself above 20, where they are the same float.
DEVICE_FN f32 softplus_f32(f32 x) {
  const f32 y = exp_f32(x < 20.0f ? x : 20.0f);
  // 1 + y = 2^n m with m in [sqrt(1/2), sqrt(2)), and f = m - 1 with what the sum lost to rounding.
  const f32 sum = 1.0f + y;
  const f32 lost = y - (sum - 1.0f);
  const u32 n_shifted = (bits_of_f32(sum) - 0x3f3504f3u) & 0xff800000u;
  const f32 n = f32(n_shifted >> 23);
  const f32 scale = f32_of_bits(0x3f800000u - n_shifted);  // 2^-n
  const f32 f = n_shifted == 0u ? y : fma_f32(sum, scale, -1.0f) + lost * scale;
  // log(1 + f) = f - (f^2/2 - s (f^2/2 + r(s^2)))
  const f32 s = f / (2.0f + f);
  const f32 s2 = s * s;
  f32 r = fma_f32(2.0f / 9.0f, s2, 2.0f / 7.0f);
  r = fma_f32(r, s2, 2.0f / 5.0f);
  r = fma_f32(r, s2, 2.0f / 3.0f);
  r = r * s2;
  const f32 half_square = 0.5f * f * f;
  const f32 correction = fma_f32(s, half_square + r, n * LN2_LOW);
  const f32 log = fma_f32(n, LN2_HIGH, f - (half_square - correction));
  return x > 20.0f || is_nan_f32(x) ? x : log;
}

}  // namespace hearth::backend::gpu
