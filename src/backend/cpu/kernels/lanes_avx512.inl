#pragma once
/// One 512-bit register: sixteen weight rows. HEARTH_VNNI is 1 where dot products of bytes are an
/// instruction.

inline constexpr std::size_t width = 16;
inline constexpr std::size_t direct_rows = 4;  // 4 x (4 sums + 1) + 4 + operands fit 32 registers
inline constexpr std::size_t block_rows = 8;   // 8 x 2 + operands; more spill without being faster

struct Floats {
  __m512 lanes;
};
struct Ints {
  __m512i lanes;
};
struct Codes {
  __m512i bytes;
};

[[HEARTH_INLINE]] inline Floats load_floats(const float* x) {
  return {_mm512_loadu_ps(x)};
}
[[HEARTH_INLINE]] inline Floats same_floats(float x) {
  return {_mm512_set1_ps(x)};
}
[[HEARTH_INLINE]] inline void store_floats(Floats x, float* out) {
  _mm512_storeu_ps(out, x.lanes);
}
[[HEARTH_INLINE]] inline Floats add(Floats a, Floats b) {
  return {_mm512_add_ps(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Floats multiply(Floats a, Floats b) {
  return {_mm512_mul_ps(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Floats multiply_add(Floats a, Floats b, Floats sum) {
  return {_mm512_fmadd_ps(a.lanes, b.lanes, sum.lanes)};
}
[[HEARTH_INLINE]] inline Floats negate(Floats x) {
  return {_mm512_xor_ps(x.lanes, _mm512_set1_ps(-0.0f))};
}

// GCC 12 warns of an undefined value in the unmasked forms of some instructions.
inline constexpr __mmask16 every_lane = 0xffff;

[[HEARTH_INLINE]] inline Floats to_floats(Ints x) {
  return {_mm512_maskz_cvtepi32_ps(every_lane, x.lanes)};
}
[[HEARTH_INLINE]] inline Floats as_floats(Ints bits) {
  return {_mm512_castsi512_ps(bits.lanes)};
}
[[HEARTH_INLINE]] inline Floats load_halves(const std::byte* x) {
  return {_mm512_maskz_cvtph_ps(every_lane, _mm256_loadu_si256(as_array<__m256i>(x)))};
}

[[HEARTH_INLINE]] inline Floats larger(Floats a, Floats b) {
  return {_mm512_maskz_max_ps(every_lane, a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Floats smaller(Floats a, Floats b) {
  return {_mm512_maskz_min_ps(every_lane, a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints as_ints(Floats x) {
  return {_mm512_castps_si512(x.lanes)};
}

[[HEARTH_INLINE]] inline Ints load_ints(const std::byte* x) {
  return {_mm512_loadu_si512(x)};
}
[[HEARTH_INLINE]] inline Ints load_signed_bytes(const std::byte* x) {
  return {_mm512_maskz_cvtepi8_epi32(every_lane, load<__m128i>(x))};
}
[[HEARTH_INLINE]] inline Ints load_unsigned_bytes(const std::byte* x) {
  return {_mm512_maskz_cvtepu8_epi32(every_lane, load<__m128i>(x))};
}
[[HEARTH_INLINE]] inline Ints load_unsigned_shorts(const std::byte* x) {
  return {_mm512_maskz_cvtepu16_epi32(every_lane, _mm256_loadu_si256(as_array<__m256i>(x)))};
}
[[HEARTH_INLINE]] inline void store_ints(Ints x, void* out) {
  _mm512_storeu_si512(out, x.lanes);
}
[[HEARTH_INLINE]] inline Ints same_ints(std::int32_t x) {
  return {_mm512_set1_epi32(x)};
}
[[HEARTH_INLINE]] inline Ints add(Ints a, Ints b) {
  return {_mm512_add_epi32(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints subtract(Ints a, Ints b) {
  return {_mm512_sub_epi32(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints multiply(Ints a, Ints b) {
  return {_mm512_mullo_epi32(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints bit_and(Ints a, Ints b) {
  return {_mm512_and_si512(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints bit_or(Ints a, Ints b) {
  return {_mm512_or_si512(a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Ints shift_left(Ints x, int count) {
  return {_mm512_maskz_sll_epi32(every_lane, x.lanes, _mm_cvtsi32_si128(count))};
}
[[HEARTH_INLINE]] inline Ints shift_right(Ints x, int count) {
  return {_mm512_maskz_srl_epi32(every_lane, x.lanes, _mm_cvtsi32_si128(count))};
}

[[HEARTH_INLINE]] inline Codes as_codes(Ints x) {
  return {x.lanes};
}
/// x, computed here and put into a register. Compilers may else fetch a word of codes once for each
/// of its uses, and GCC 12 puts additions off to the end of a loop, with what they add on the stack
/// until then.
[[HEARTH_INLINE]] inline __m512i in_register(__m512i x) {
  asm("" : "+v"(x));
  return x;
}
[[HEARTH_INLINE]] inline Codes load_codes(const std::byte* x) {
  return {in_register(_mm512_loadu_si512(x))};
}
[[HEARTH_INLINE]] inline void store_codes(Codes x, std::byte* out) {
  _mm512_storeu_si512(out, x.bytes);
}
[[HEARTH_INLINE]] inline Codes bit_or(Codes a, Codes b) {
  return {_mm512_or_si512(a.bytes, b.bytes)};
}
[[HEARTH_INLINE]] inline Codes shift_bytes_right(Codes x, int count) {
  return {_mm512_srl_epi16(x.bytes, _mm_cvtsi32_si128(count))};
}
template <int from, int to, int mask>
[[HEARTH_INLINE]] inline Codes bits(Codes x) {
  __m512i moved = x.bytes;
  if constexpr (from > to) {
    moved = _mm512_srli_epi16(moved, from - to);
  } else if constexpr (to > from) {
    moved = _mm512_slli_epi16(moved, to - from);
  }
  return {_mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(mask << to)))};
}
[[HEARTH_INLINE]] inline Codes look_up(const std::array<std::int8_t, 16>& values, Codes indices) {
  const __m512i table = _mm512_maskz_broadcast_i32x4(every_lane, load<__m128i>(values.data()));
  return {_mm512_shuffle_epi8(table, indices.bytes)};
}

#if HEARTH_VNNI
inline constexpr std::int32_t signed_bias = 128;

[[HEARTH_INLINE]] inline Codes offset_signed(Codes x) {
  return {_mm512_xor_si512(x.bytes, _mm512_set1_epi8(static_cast<char>(0x80)))};
}
// The products fetch their activations themselves ("1to16"). Compilers may spend an instruction and
// a register on each instead, and GCC 12 always does, so it is spelled out.
[[HEARTH_INLINE]] inline Ints dot(Codes codes, const std::int8_t* x, Ints sum) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(sum.lanes)
      : "v"(codes.bytes), "m"(*as_array<std::array<std::int8_t, 4>>(as_byte_array(x))));
  return sum;
}
[[HEARTH_INLINE]] inline Ints dot_signed(Codes codes, const std::int8_t* x, Ints sum) {
  return dot(codes, x, sum);
}
[[HEARTH_INLINE]] inline Ints dot_pairs(Ints pairs, const std::int16_t* x, Ints sum) {
  asm("vpdpwssd %2%{1to16%}, %1, %0"
      : "+v"(sum.lanes)
      : "v"(pairs.lanes), "m"(*as_array<std::array<std::int16_t, 2>>(as_byte_array(x))));
  return sum;
}
#else
inline constexpr std::int32_t signed_bias = 0;

[[HEARTH_INLINE]] inline Codes offset_signed(Codes x) {
  return x;
}
[[HEARTH_INLINE]] inline Ints dot(Codes codes, const std::int8_t* x, Ints sum) {
  const __m512i pairs = _mm512_maddubs_epi16(codes.bytes, _mm512_set1_epi32(load<std::int32_t>(x)));
  const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
  return {in_register(_mm512_add_epi32(sum.lanes, fours))};
}
[[HEARTH_INLINE]] inline Ints dot_signed(Codes codes, const std::int8_t* x, Ints sum) {
  // |w| (x sign(w)): magnitudes up to 128 fit unsigned bytes, and 2 * 128 * 127 fits 16 bits.
  const __m512i same = _mm512_set1_epi32(load<std::int32_t>(x));
  const __mmask64 is_negative = _mm512_movepi8_mask(codes.bytes);
  const __m512i signs = _mm512_mask_sub_epi8(same, is_negative, _mm512_setzero_si512(), same);
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(codes.bytes), signs);
  const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
  return {in_register(_mm512_add_epi32(sum.lanes, fours))};
}
[[HEARTH_INLINE]] inline Ints dot_pairs(Ints pairs, const std::int16_t* x, Ints sum) {
  const __m512i both = _mm512_set1_epi32(load<std::int32_t>(x));
  return {in_register(_mm512_add_epi32(sum.lanes, _mm512_madd_epi16(pairs.lanes, both)))};
}
#endif
