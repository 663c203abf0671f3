#pragma once
/// Four weight rows in the vectors that GCC and clang have for every processor: with
/// vectors_128.inl, the definition of the other lanes_*.inl.

#include "backend/cpu/kernels/vectors_128.inl"

inline constexpr std::size_t direct_rows = 2;  // activation rows that meet a tile at once
inline constexpr std::size_t block_rows = 4;   // the same for an unpacked tile

[[HEARTH_INLINE]] inline Floats multiply_add(const Floats& a, const Floats& b, const Floats& sum) {
  Floats result;
  for (std::size_t j = 0; j < width; ++j) {
    result.lanes[j] = std::fma(a.lanes[j], b.lanes[j], sum.lanes[j]);
  }
  return result;
}
[[HEARTH_INLINE]] inline Floats load_halves(const std::byte* x) {
  Floats result;
  for (std::size_t j = 0; j < width; ++j) {
    result.lanes[j] = to_float(load<Half>(x, j * sizeof(Half)));
  }
  return result;
}

template <class Element>
[[HEARTH_INLINE]] inline Ints widen(const std::byte* x) {
  using Vector [[gnu::vector_size(width * sizeof(Element))]] = Element;
  return {__builtin_convertvector(load<Vector>(x), IntVector)};
}
[[HEARTH_INLINE]] inline Ints load_signed_bytes(const std::byte* x) {
  return widen<std::int8_t>(x);
}
[[HEARTH_INLINE]] inline Ints load_unsigned_bytes(const std::byte* x) {
  return widen<std::uint8_t>(x);
}
[[HEARTH_INLINE]] inline Ints load_unsigned_shorts(const std::byte* x) {
  return widen<std::uint16_t>(x);
}

/// values[index], for indices below 16.
[[HEARTH_INLINE]] inline Codes look_up(const std::array<std::int8_t, 16>& values,
                                       const Codes& indices) {
  auto bytes = std::bit_cast<std::array<std::uint8_t, 4 * width>>(indices);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(values[byte]);
  }
  return std::bit_cast<Codes>(bytes);
}

/// Adds even * (x[0], x[2]) + odd * (x[1], x[3]), pairs of 16 bits, to 32-bit sums. With codes up
/// to 128 in magnitude a pair of products fits 16 bits.
[[HEARTH_INLINE]] inline Ints add_products(const ShortVector& even, const ShortVector& odd,
                                           const std::int8_t* x, const Ints& sum) {
  const auto same_pair = [](std::int8_t low, std::int8_t high) {
    const auto bits = static_cast<std::uint32_t>(static_cast<std::uint16_t>(low)) |
                      static_cast<std::uint32_t>(static_cast<std::uint16_t>(high)) << 16;
    return std::bit_cast<ShortVector>(UnsignedVector{} + bits);
  };
  const ShortVector products = even * same_pair(x[0], x[2]) + odd * same_pair(x[1], x[3]);
  const auto pairs = std::bit_cast<IntVector>(products);
  const auto low = std::bit_cast<IntVector>(std::bit_cast<UnsignedVector>(products) << 16);
  return {sum.lanes + (low >> 16) + (pairs >> 16)};
}
/// sum[j] + the four codes of row j, 0...127 each, times x[0...3].
[[HEARTH_INLINE]] inline Ints dot(const Codes& codes, const std::int8_t* x, const Ints& sum) {
  const auto pairs = std::bit_cast<UnsignedShortVector>(codes);
  return add_products(std::bit_cast<ShortVector>(pairs & 255),
                      std::bit_cast<ShortVector>(pairs >> 8), x, sum);
}
/// The same with codes -128...127 that went through offset_signed().
[[HEARTH_INLINE]] inline Ints dot_signed(const Codes& codes, const std::int8_t* x,
                                         const Ints& sum) {
  const auto pairs = std::bit_cast<ShortVector>(codes);
  const auto low = std::bit_cast<ShortVector>(std::bit_cast<UnsignedShortVector>(codes) << 8);
  return add_products(low >> 8, pairs >> 8, x, sum);
}
/// sum[j] + the low and high 16-bit halves of pairs[j] times x[0] and x[1].
[[HEARTH_INLINE]] inline Ints dot_pairs(const Ints& pairs, const std::int16_t* x, const Ints& sum) {
  const auto low = std::bit_cast<IntVector>(std::bit_cast<UnsignedVector>(pairs) << 16) >> 16;
  return {sum.lanes + low * std::int32_t{x[0]} + (pairs.lanes >> 16) * std::int32_t{x[1]}};
}
