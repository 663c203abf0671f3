#pragma once
/// Four weight rows in the vectors that GCC and clang have for every processor: the definition
/// of the other lanes_*.inl.

inline constexpr std::size_t width = 4;        // rows per vector
inline constexpr std::size_t direct_rows = 2;  // activation rows that meet a tile at once
inline constexpr std::size_t block_rows = 4;   // the same for an unpacked tile

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
  return {FloatVector{} + x};
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
[[HEARTH_INLINE]] inline Floats multiply_add(const Floats& a, const Floats& b, const Floats& sum) {
  Floats result;
  for (std::size_t j = 0; j < width; ++j) {
    result.lanes[j] = std::fma(a.lanes[j], b.lanes[j], sum.lanes[j]);
  }
  return result;
}
[[HEARTH_INLINE]] inline Floats negate(const Floats& x) {
  return {-x.lanes};
}
[[HEARTH_INLINE]] inline Floats to_floats(const Ints& x) {
  return {__builtin_convertvector(x.lanes, FloatVector)};
}
[[HEARTH_INLINE]] inline Floats as_floats(const Ints& bits) {
  return std::bit_cast<Floats>(bits);
}
[[HEARTH_INLINE]] inline Floats load_halves(const std::byte* x) {
  Floats result;
  for (std::size_t j = 0; j < width; ++j) {
    result.lanes[j] = to_float(load<Half>(x, j * sizeof(Half)));
  }
  return result;
}

[[HEARTH_INLINE]] inline Ints load_ints(const std::byte* x) {
  return load<Ints>(x);
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
/// values[index], for indices below 16.
[[HEARTH_INLINE]] inline Codes look_up(const std::array<std::int8_t, 16>& values,
                                       const Codes& indices) {
  auto bytes = std::bit_cast<std::array<std::uint8_t, 4 * width>>(indices);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(values[byte]);
  }
  return std::bit_cast<Codes>(bytes);
}

/// What offset_signed() adds to signed codes, for machines that multiply unsigned bytes by signed
/// ones only. The sums of dot_signed() are too large by as many times the activations' sum.
inline constexpr std::int32_t signed_bias = 0;

[[HEARTH_INLINE]] inline Codes offset_signed(const Codes& x) {
  return x;
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
