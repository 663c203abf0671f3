/// Sixteen lanes in two 256-bit registers.

struct Floats {
  __m256 low, high;
};
struct Ints {
  __m256i low, high;
};

[[HEARTH_TARGET]] inline Floats load_floats(const float* x) {
  return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)};
}
[[HEARTH_TARGET]] inline Floats same_floats(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
[[HEARTH_TARGET]] inline void store_floats(Floats x, float* out) {
  _mm256_storeu_ps(out, x.low);
  _mm256_storeu_ps(out + 8, x.high);
}
[[HEARTH_TARGET]] inline Floats add(Floats a, Floats b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
[[HEARTH_TARGET]] inline Floats multiply(Floats a, Floats b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
[[HEARTH_TARGET]] inline Floats multiply_add(Floats a, Floats b, Floats sum) {
  return {_mm256_fmadd_ps(a.low, b.low, sum.low), _mm256_fmadd_ps(a.high, b.high, sum.high)};
}
[[HEARTH_TARGET]] inline Floats to_floats(Ints x) {
  return {_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)};
}

/// sum[j] + pairs[j][0] x[0] + pairs[j][1] x[1]; pairs [16][2].
[[HEARTH_TARGET]] inline Ints add_pair_products(const std::int16_t* pairs, const std::int16_t* x,
                                                Ints sum) {
  const __m256i both = _mm256_set1_epi32(load<std::int32_t>(x));
  const auto* halves = static_cast<const __m256i*>(static_cast<const void*>(pairs));
  const __m256i low = _mm256_madd_epi16(_mm256_loadu_si256(halves), both);
  const __m256i high = _mm256_madd_epi16(_mm256_loadu_si256(halves + 1), both);
  return {_mm256_add_epi32(sum.low, low), _mm256_add_epi32(sum.high, high)};
}
