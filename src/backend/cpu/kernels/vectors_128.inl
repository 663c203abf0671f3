#pragma once
/// The part of lanes_*.inl that compilers write well from plain operators on vectors of 128 bits:
/// four weight rows.

inline constexpr std::size_t width = 4;  // rows per vector

using FloatVector [[gnu::vector_size(16)]] = float;
using IntVector [[gnu::vector_size(16)]] = std::int32_t;
using UnsignedVector [[gnu::vector_size(16)]] = std::uint32_t;
using ShortVector [[gnu::vector_size(16)]] = std::int16_t;
using UnsignedShortVector [[gnu::vector_size(16)]] = std::uint16_t;
using ByteVector [[gnu::vector_size(16)]] = std::uint8_t;

struct Floats {
  FloatVector lanes;
};
struct Ints {
  IntVector lanes;
};
/// Four consecutive codes of each row.
struct Codes {
  ByteVector bytes;
};

[[HEARTH_INLINE]] inline Floats load_floats(const float* x) {
  return load<Floats>(x);
}
[[HEARTH_INLINE]] inline Floats same_floats(float x) {
  return {FloatVector{x, x, x, x}};
}
[[HEARTH_INLINE]] inline void store_floats(const Floats& x, float* out) {
  store(out, x);
}
[[HEARTH_INLINE]] inline Floats add(const Floats& a, const Floats& b) {
  return {a.lanes + b.lanes};
}
[[HEARTH_INLINE]] inline Floats multiply(const Floats& a, const Floats& b) {
  return {a.lanes * b.lanes};
}
[[HEARTH_INLINE]] inline Floats negate(const Floats& x) {
  return {-x.lanes};
}
/// a > b ? a : b, so b where one of them is NaN.
[[HEARTH_INLINE]] inline Floats larger(const Floats& a, const Floats& b) {
  return {a.lanes > b.lanes ? a.lanes : b.lanes};
}
/// a < b ? a : b
[[HEARTH_INLINE]] inline Floats smaller(const Floats& a, const Floats& b) {
  return {a.lanes < b.lanes ? a.lanes : b.lanes};
}
[[HEARTH_INLINE]] inline Ints as_ints(const Floats& x) {
  return std::bit_cast<Ints>(x);
}
[[HEARTH_INLINE]] inline Floats to_floats(const Ints& x) {
  return {__builtin_convertvector(x.lanes, FloatVector)};
}
[[HEARTH_INLINE]] inline Floats as_floats(const Ints& bits) {
  return std::bit_cast<Floats>(bits);
}
[[HEARTH_INLINE]] inline Ints load_ints(const std::byte* x) {
  return load<Ints>(x);
}
[[HEARTH_INLINE]] inline void store_ints(const Ints& x, void* out) {
  store(out, x);
}
[[HEARTH_INLINE]] inline Ints same_ints(std::int32_t x) {
  return {IntVector{} + x};
}
[[HEARTH_INLINE]] inline Ints add(const Ints& a, const Ints& b) {
  return {a.lanes + b.lanes};
}
[[HEARTH_INLINE]] inline Ints subtract(const Ints& a, const Ints& b) {
  return {a.lanes - b.lanes};
}
[[HEARTH_INLINE]] inline Ints multiply(const Ints& a, const Ints& b) {
  return {a.lanes * b.lanes};
}
[[HEARTH_INLINE]] inline Ints bit_and(const Ints& a, const Ints& b) {
  return {a.lanes & b.lanes};
}
[[HEARTH_INLINE]] inline Ints bit_or(const Ints& a, const Ints& b) {
  return {a.lanes | b.lanes};
}
[[HEARTH_INLINE]] inline Ints shift_left(const Ints& x, int count) {
  return std::bit_cast<Ints>(std::bit_cast<UnsignedVector>(x) << count);
}
[[HEARTH_INLINE]] inline Ints shift_right(const Ints& x, int count) {
  return std::bit_cast<Ints>(std::bit_cast<UnsignedVector>(x) >> count);
}

[[HEARTH_INLINE]] inline Codes as_codes(const Ints& x) {
  return std::bit_cast<Codes>(x);
}
[[HEARTH_INLINE]] inline Codes load_codes(const std::byte* x) {
  return load<Codes>(x);
}
[[HEARTH_INLINE]] inline void store_codes(const Codes& x, std::byte* out) {
  store(out, x);
}
[[HEARTH_INLINE]] inline Codes bit_or(const Codes& a, const Codes& b) {
  return {a.bytes | b.bytes};
}
/// May leave bits of a neighbour in the top of a byte.
[[HEARTH_INLINE]] inline Codes shift_bytes_right(const Codes& x, int count) {
  return std::bit_cast<Codes>(std::bit_cast<UnsignedShortVector>(x) >> count);
}
/// The bits of each byte that `mask` has after bit `from` comes to its bit 0, moved up to bit `to`.
template <int from, int to, int mask>
[[HEARTH_INLINE]] inline Codes bits(const Codes& x) {
  auto moved = std::bit_cast<UnsignedShortVector>(x);
  if constexpr (from > to) {
    moved >>= from - to;
  } else if constexpr (to > from) {
    moved <<= to - from;
  }
  return {std::bit_cast<ByteVector>(moved) & static_cast<std::uint8_t>(mask << to)};
}

/// What offset_signed() adds to signed codes, for machines that multiply unsigned bytes by signed
/// ones only. The sums of dot_signed() are too large by as many times the activations' sum.
inline constexpr std::int32_t signed_bias = 0;

[[HEARTH_INLINE]] inline Codes offset_signed(const Codes& x) {
  return x;
}
