#pragma once
/// Elementary functions out of fused multiply-adds alone, so that every target gives the same bits
/// where it rounds correctly. The formulas are those of base/math.h.

namespace hearth::backend::gpu {

/// Smaller than any score, and finite: infinities may be assumed away by a compiler.
#define LOWEST_F32 (-3.0e38f)

DEVICE_FN f32 rsqrt_f32(f32 x) {
  return 1.0f / sqrt_f32(x);
}

/// exp(x), within 2 ulp; arguments are clamped to [-87.3, 88.7].
DEVICE_FN f32 exp_f32(f32 x) {
  const f32 round_magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  f32 clamped = x < -87.3f ? -87.3f : x;
  clamped = clamped > 88.7f ? 88.7f : clamped;
  // x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, of which n times the first is exact
  const f32 shifted = fma_f32(clamped, 1.44269502f, round_magic);
  const f32 n = shifted - round_magic;
  const f32 r = fma_f32(n, -1.42860677e-6f, fma_f32(n, -0.693145752f, clamped));
  // e^r = 1 + r + r^2 q(r)
  f32 q = fma_f32(0.00138145406f, r, 0.00836874545f);
  q = fma_f32(q, r, 0.041668389f);
  q = fma_f32(q, r, 0.166665211f);
  q = fma_f32(q, r, 0.49999994f);
  const f32 power = fma_f32(fma_f32(q, r, 1.0f), r, 1.0f);
  return f32_of_bits(bits_of_f32(power) + (bits_of_f32(shifted) << 23));
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

/// log(1 + e^x), and x itself above 20, where they are the same float.
DEVICE_FN f32 softplus_f32(f32 x) {
  const f32 y = exp_f32(x < 20.0f ? x : 20.0f);
  // 1 + y = 2^n m with m in [sqrt(1/2), sqrt(2)); for n = 0 the excess m - 1 is y, however small.
  const u32 bits = bits_of_f32(1.0f + y);
  const u32 n = (bits - 0x3f3504f3u) >> 23;
  const f32 excess = n == 0u ? y : f32_of_bits(bits - (n << 23)) - 1.0f;
  // log m = 2 artanh(s), |s| < 0.172; the first term left out is below 2^-27 of the sum.
  const f32 s = excess / (2.0f + excess);
  const f32 s2 = s * s;
  f32 t = fma_f32(0.111111111f, s2, 0.142857143f);
  t = fma_f32(t, s2, 0.2f);
  t = fma_f32(t, s2, 0.333333333f);
  t = fma_f32(t, s2, 1.0f);
  const f32 log = fma_f32(f32(n), 0.693147182f, 2.0f * s * t);
  return x > 20.0f ? x : log;
}

}  // namespace hearth::backend::gpu
