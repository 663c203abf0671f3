/// Sixteen lanes in one 512-bit register.

struct Floats {
  __m512 lanes;
};
struct Ints {
  __m512i lanes;
};

[[HEARTH_TARGET]] inline Floats load_floats(const float* x) {
  return {_mm512_loadu_ps(x)};
}
[[HEARTH_TARGET]] inline Floats same_floats(float x) {
  return {_mm512_set1_ps(x)};
}
[[HEARTH_TARGET]] inline void store_floats(Floats x, float* out) {
  _mm512_storeu_ps(out, x.lanes);
}
[[HEARTH_TARGET]] inline Floats add(Floats a, Floats b) {
  return {_mm512_add_ps(a.lanes, b.lanes)};
}
[[HEARTH_TARGET]] inline Floats multiply(Floats a, Floats b) {
  return {_mm512_mul_ps(a.lanes, b.lanes)};
}
[[HEARTH_TARGET]] inline Floats multiply_add(Floats a, Floats b, Floats sum) {
  return {_mm512_fmadd_ps(a.lanes, b.lanes, sum.lanes)};
}
[[HEARTH_TARGET]] inline Floats to_floats(Ints x) {
  constexpr __mmask16 all = 0xffff;  // GCC 12 warns of an undefined value in the unmasked form
  return {_mm512_maskz_cvtepi32_ps(all, x.lanes)};
}

/// sum[j] + pairs[j][0] x[0] + pairs[j][1] x[1]; pairs [16][2].
[[HEARTH_TARGET]] inline Ints add_pair_products(const std::int16_t* pairs, const std::int16_t* x,
                                                Ints sum) {
  const __m512i both = _mm512_set1_epi32(load<std::int32_t>(x));
  const __m512i products = _mm512_madd_epi16(_mm512_loadu_si512(pairs), both);
  return {_mm512_add_epi32(sum.lanes, products)};
}
