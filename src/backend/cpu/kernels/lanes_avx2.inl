#pragma once
/// One 256-bit register: eight weight rows. HEARTH_VNNI is 1 where dot products of bytes are an
/// instruction.

inline constexpr std::size_t width = 8;
inline constexpr std::size_t direct_rows = 2;  // few, because there are 16 registers
inline constexpr std::size_t block_rows = 4;

struct Floats {
  __m256 lanes;
};
struct Ints {
  __m256i lanes;
};
struct Codes {
  __m256i bytes;
};

[[HEARTH_INLINE]] inline Floats load_floats(const float* x) {
  return {_mm256_loadu_ps(x)};
}
[[HEARTH_INLINE]] inline Floats same_floats(float x) {
  return {_mm256_set1_ps(x)};
}
[[HEARTH_INLINE]] inline void store_floats(Floats x, float* out) {
  _mm256_storeu_ps(out, x.lanes);
}
[[HEARTH_INLINE]] inline Floats add(Floats a, Floats b) {
  return {_mm256_add_ps(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Floats multiply(Floats a, Floats b) {
  return {_mm256_mul_ps(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Floats multiply_add(Floats a, Floats b, Floats sum) {
  return {_mm256_fmadd_ps(a.lanes, b.lanes, sum.lanes)};
}
[[HEARTH_INLINE]] inline Floats negate(Floats x) {
  return {_mm256_xor_ps(x.lanes, _mm256_set1_ps(-0.0f))};
}
[[HEARTH_INLINE]] inline Floats larger(Floats a, Floats b) {
  return {_mm256_max_ps(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Floats smaller(Floats a, Floats b) {
  return {_mm256_min_ps(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints as_ints(Floats x) {
  return {_mm256_castps_si256(x.lanes)};
}
[[HEARTH_INLINE]] inline Floats to_floats(Ints x) {
  return {_mm256_cvtepi32_ps(x.lanes)};
}
[[HEARTH_INLINE]] inline Floats as_floats(Ints bits) {
  return {_mm256_castsi256_ps(bits.lanes)};
}
[[HEARTH_INLINE]] inline Floats load_halves(const std::byte* x) {
  return {_mm256_cvtph_ps(load<__m128i>(x))};
}

[[HEARTH_INLINE]] inline Ints load_ints(const std::byte* x) {
  return {_mm256_loadu_si256(as_array<__m256i>(x))};
}
[[HEARTH_INLINE]] inline Ints load_signed_bytes(const std::byte* x) {
  return {_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(load<std::int64_t>(x)))};
}
[[HEARTH_INLINE]] inline Ints load_unsigned_bytes(const std::byte* x) {
  return {_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(load<std::int64_t>(x)))};
}
[[HEARTH_INLINE]] inline Ints load_unsigned_shorts(const std::byte* x) {
  return {_mm256_cvtepu16_epi32(load<__m128i>(x))};
}
[[HEARTH_INLINE]] inline void store_ints(Ints x, void* out) {
  _mm256_storeu_si256(static_cast<__m256i*>(out), x.lanes);
}
[[HEARTH_INLINE]] inline Ints same_ints(std::int32_t x) {
  return {_mm256_set1_epi32(x)};
}
[[HEARTH_INLINE]] inline Ints add(Ints a, Ints b) {
  return {_mm256_add_epi32(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints subtract(Ints a, Ints b) {
  return {_mm256_sub_epi32(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints multiply(Ints a, Ints b) {
  return {_mm256_mullo_epi32(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints bit_and(Ints a, Ints b) {
  return {_mm256_and_si256(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints bit_or(Ints a, Ints b) {
  return {_mm256_or_si256(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints shift_left(Ints x, int count) {
  return {_mm256_sll_epi32(x.lanes, _mm_cvtsi32_si128(count))};
}
[[HEARTH_INLINE]] inline Ints shift_right(Ints x, int count) {
  return {_mm256_srl_epi32(x.lanes, _mm_cvtsi32_si128(count))};
}

[[HEARTH_INLINE]] inline Codes as_codes(Ints x) {
  return {x.lanes};
}
[[HEARTH_INLINE]] inline Codes load_codes(const std::byte* x) {
  return {_mm256_loadu_si256(as_array<__m256i>(x))};
}
[[HEARTH_INLINE]] inline void store_codes(Codes x, std::byte* out) {
  _mm256_storeu_si256(as_array<__m256i>(out), x.bytes);
}
[[HEARTH_INLINE]] inline Codes bit_or(Codes a, Codes b) {
  return {_mm256_or_si256(a.bytes, b.bytes)};
}
[[HEARTH_INLINE]] inline Codes shift_bytes_right(Codes x, int count) {
  return {_mm256_srl_epi16(x.bytes, _mm_cvtsi32_si128(count))};
}
template <int from, int to, int mask>
[[HEARTH_INLINE]] inline Codes bits(Codes x) {
  __m256i moved = x.bytes;
  if constexpr (from > to) {
    moved = _mm256_srli_epi16(moved, from - to);
  } else if constexpr (to > from) {
    moved = _mm256_slli_epi16(moved, to - from);
  }
  return {_mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(mask << to)))};
}
[[HEARTH_INLINE]] inline Codes look_up(const std::array<std::int8_t, 16>& values, Codes indices) {
  const __m256i table = _mm256_broadcastsi128_si256(load<__m128i>(values.data()));
  return {_mm256_shuffle_epi8(table, indices.bytes)};
}

#if HEARTH_VNNI
inline constexpr std::int32_t signed_bias = 128;

[[HEARTH_INLINE]] inline Codes offset_signed(Codes x) {
  return {_mm256_xor_si256(x.bytes, _mm256_set1_epi8(static_cast<char>(0x80)))};
}
[[HEARTH_INLINE]] inline Ints dot(Codes codes, const std::int8_t* x, Ints sum) {
  const __m256i same = _mm256_set1_epi32(load<std::int32_t>(x));
  return {_mm256_dpbusd_avx_epi32(sum.lanes, codes.bytes, same)};
}
[[HEARTH_INLINE]] inline Ints dot_signed(Codes codes, const std::int8_t* x, Ints sum) {
  return dot(codes, x, sum);
}
[[HEARTH_INLINE]] inline Ints dot_pairs(Ints pairs, const std::int16_t* x, Ints sum) {
  const __m256i both = _mm256_set1_epi32(load<std::int32_t>(x));
  return {_mm256_dpwssd_avx_epi32(sum.lanes, pairs.lanes, both)};
}
#else
inline constexpr std::int32_t signed_bias = 0;

/// x, computed here: GCC 12 puts additions off to the end of a loop, with what they add on the
/// stack until then.
[[HEARTH_INLINE]] inline __m256i in_register(__m256i x) {
  asm("" : "+x"(x));
  return x;
}

[[HEARTH_INLINE]] inline Codes offset_signed(Codes x) {
  return x;
}
[[HEARTH_INLINE]] inline Ints dot(Codes codes, const std::int8_t* x, Ints sum) {
  const __m256i pairs = _mm256_maddubs_epi16(codes.bytes, _mm256_set1_epi32(load<std::int32_t>(x)));
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  return {in_register(_mm256_add_epi32(sum.lanes, fours))};
}
[[HEARTH_INLINE]] inline Ints dot_signed(Codes codes, const std::int8_t* x, Ints sum) {
  // |w| (x sign(w)): magnitudes up to 128 fit unsigned bytes, and 2 * 128 * 127 fits 16 bits.
  const __m256i signs = _mm256_sign_epi8(_mm256_set1_epi32(load<std::int32_t>(x)), codes.bytes);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(codes.bytes), signs);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  return {in_register(_mm256_add_epi32(sum.lanes, fours))};
}
[[HEARTH_INLINE]] inline Ints dot_pairs(Ints pairs, const std::int16_t* x, Ints sum) {
  const __m256i both = _mm256_set1_epi32(load<std::int32_t>(x));
  return {in_register(_mm256_add_epi32(sum.lanes, _mm256_madd_epi16(pairs.lanes, both)))};
}
#endif
