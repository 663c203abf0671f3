#pragma once
/// One 128-bit register of arm64: four weight rows. HEARTH_DOTPROD is 1 where dot products of bytes
/// are an instruction. Bytes multiply as signed ones, which codes up to 127 are too, so nothing is
/// ever offset.

#include "backend/cpu/kernels/vectors_128.inl"

#if HEARTH_DOTPROD
inline constexpr std::size_t direct_rows = 4;  // 4 x (4 sums + 1) + 4 + operands fit 32 registers
inline constexpr std::size_t block_rows = 8;   // 8 x 3 + operands
#else
inline constexpr std::size_t direct_rows = 2;  // fewer, because products are operands too
inline constexpr std::size_t block_rows = 4;
#endif

[[HEARTH_INLINE]] inline Floats multiply_add(const Floats& a, const Floats& b, const Floats& sum) {
  return {vfmaq_f32(sum.lanes, a.lanes, b.lanes)};
}
[[HEARTH_INLINE]] inline Floats load_halves(const std::byte* x) {
  return {vcvt_f32_f16(vreinterpret_f16_u16(load<uint16x4_t>(x)))};
}

/// Four bytes and four zeros.
[[HEARTH_INLINE]] inline int8x8_t load_four_bytes(const void* x) {
  return vreinterpret_s8_s32(vset_lane_s32(load<std::int32_t>(x), vdup_n_s32(0), 0));
}
[[HEARTH_INLINE]] inline Ints load_signed_bytes(const std::byte* x) {
  return {vmovl_s16(vget_low_s16(vmovl_s8(load_four_bytes(x))))};
}
[[HEARTH_INLINE]] inline Ints load_unsigned_bytes(const std::byte* x) {
  const uint16x8_t shorts = vmovl_u8(vreinterpret_u8_s8(load_four_bytes(x)));
  return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(shorts)))};
}
[[HEARTH_INLINE]] inline Ints load_unsigned_shorts(const std::byte* x) {
  return {vreinterpretq_s32_u32(vmovl_u16(load<uint16x4_t>(x)))};
}

[[HEARTH_INLINE]] inline Codes look_up(const std::array<std::int8_t, 16>& values,
                                       const Codes& indices) {
  return {vreinterpretq_u8_s8(vqtbl1q_s8(vld1q_s8(values.data()), indices.bytes))};
}

template <std::size_t place>
[[HEARTH_INLINE]] inline Ints dot_signed(const Codes& codes, FourActivations<place> x,
                                         const Ints& sum) {
  const int8x16_t bytes = vreinterpretq_s8_u8(codes.bytes);
#if HEARTH_DOTPROD
  return {vdotq_laneq_s32(sum.lanes, bytes, load<int8x16_t>(x.sixteen()), place)};
#else
  // A pair of products fits 16 bits: 2 * 128 * 127.
  const int8x16_t same = vreinterpretq_s8_s32(vdupq_n_s32(load<std::int32_t>(x)));
  const int16x8_t low = vmull_s8(vget_low_s8(bytes), vget_low_s8(same));
  const int16x8_t high = vmull_high_s8(bytes, same);
  return {vpadalq_s16(sum.lanes, vpaddq_s16(low, high))};
#endif
}
template <std::size_t place>
[[HEARTH_INLINE]] inline Ints dot(const Codes& codes, FourActivations<place> x, const Ints& sum) {
  return dot_signed(codes, x, sum);
}
[[HEARTH_INLINE]] inline Ints dot_pairs(const Ints& pairs, const std::int16_t* x, const Ints& sum) {
  const int16x4_t both = vreinterpret_s16_s8(load_four_bytes(x));
  const int32x4_t low = vmlal_lane_s16(sum.lanes, vmovn_s32(pairs.lanes), both, 0);
  return {vmlal_lane_s16(low, vshrn_n_s32(pairs.lanes, 16), both, 1)};
}
