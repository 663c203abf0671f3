#pragma once
/// Sixteen weight rows in plain arrays: the definition of the other lanes_*.inl.

inline constexpr std::size_t width = 16;       // rows per vector
inline constexpr std::size_t direct_rows = 2;  // activation rows that meet a tile at once
inline constexpr std::size_t block_rows = 4;   // the same for an unpacked tile

struct Floats {
  std::array<float, width> lanes;
};
struct Ints {
  std::array<std::int32_t, width> lanes;
};
/// Four consecutive codes of each row.
struct Codes {
  std::array<std::uint8_t, width * 4> bytes;
};

template <class F>
[[HEARTH_INLINE]] inline Floats map_floats(F&& lane) {
  Floats result;
  for (std::size_t j = 0; j < width; ++j) {
    result.lanes[j] = lane(j);
  }
  return result;
}
template <class F>
[[HEARTH_INLINE]] inline Ints map_ints(F&& lane) {
  Ints result;
  for (std::size_t j = 0; j < width; ++j) {
    result.lanes[j] = static_cast<std::int32_t>(lane(j));
  }
  return result;
}
template <class F>
[[HEARTH_INLINE]] inline Codes map_codes(F&& code) {
  Codes result;
  for (std::size_t i = 0; i < width * 4; ++i) {
    result.bytes[i] = static_cast<std::uint8_t>(code(i));
  }
  return result;
}

[[HEARTH_INLINE]] inline Floats load_floats(const float* x) {
  return load<Floats>(x);
}
[[HEARTH_INLINE]] inline Floats same_floats(float x) {
  return map_floats([&](std::size_t) { return x; });
}
[[HEARTH_INLINE]] inline void store_floats(const Floats& x, float* out) {
  store(out, x);
}
[[HEARTH_INLINE]] inline Floats add(const Floats& a, const Floats& b) {
  return map_floats([&](std::size_t j) { return a.lanes[j] + b.lanes[j]; });
}
[[HEARTH_INLINE]] inline Floats multiply(const Floats& a, const Floats& b) {
  return map_floats([&](std::size_t j) { return a.lanes[j] * b.lanes[j]; });
}
[[HEARTH_INLINE]] inline Floats multiply_add(const Floats& a, const Floats& b, const Floats& sum) {
  return map_floats([&](std::size_t j) { return std::fma(a.lanes[j], b.lanes[j], sum.lanes[j]); });
}
[[HEARTH_INLINE]] inline Floats negate(const Floats& x) {
  return map_floats([&](std::size_t j) { return -x.lanes[j]; });
}
[[HEARTH_INLINE]] inline Floats to_floats(const Ints& x) {
  return map_floats([&](std::size_t j) { return static_cast<float>(x.lanes[j]); });
}
[[HEARTH_INLINE]] inline Floats as_floats(const Ints& bits) {
  return map_floats([&](std::size_t j) { return std::bit_cast<float>(bits.lanes[j]); });
}
[[HEARTH_INLINE]] inline Floats load_halves(const std::byte* x) {
  return map_floats([&](std::size_t j) { return to_float(load<Half>(x, j * sizeof(Half))); });
}

[[HEARTH_INLINE]] inline Ints load_ints(const std::byte* x) {
  return load<Ints>(x);
}
[[HEARTH_INLINE]] inline Ints load_signed_bytes(const std::byte* x) {
  return map_ints([&](std::size_t j) { return load<std::int8_t>(x, j); });
}
[[HEARTH_INLINE]] inline Ints load_unsigned_bytes(const std::byte* x) {
  return map_ints([&](std::size_t j) { return load<std::uint8_t>(x, j); });
}
[[HEARTH_INLINE]] inline Ints load_unsigned_shorts(const std::byte* x) {
  return map_ints([&](std::size_t j) { return load<std::uint16_t>(x, 2 * j); });
}
[[HEARTH_INLINE]] inline void store_ints(const Ints& x, void* out) {
  store(out, x);
}
[[HEARTH_INLINE]] inline Ints same_ints(std::int32_t x) {
  return map_ints([&](std::size_t) { return x; });
}
[[HEARTH_INLINE]] inline Ints add(const Ints& a, const Ints& b) {
  return map_ints([&](std::size_t j) { return a.lanes[j] + b.lanes[j]; });
}
[[HEARTH_INLINE]] inline Ints subtract(const Ints& a, const Ints& b) {
  return map_ints([&](std::size_t j) { return a.lanes[j] - b.lanes[j]; });
}
[[HEARTH_INLINE]] inline Ints multiply(const Ints& a, const Ints& b) {
  return map_ints([&](std::size_t j) { return a.lanes[j] * b.lanes[j]; });
}
[[HEARTH_INLINE]] inline Ints bit_and(const Ints& a, const Ints& b) {
  return map_ints([&](std::size_t j) { return a.lanes[j] & b.lanes[j]; });
}
[[HEARTH_INLINE]] inline Ints bit_or(const Ints& a, const Ints& b) {
  return map_ints([&](std::size_t j) { return a.lanes[j] | b.lanes[j]; });
}
[[HEARTH_INLINE]] inline Ints shift_left(const Ints& x, int count) {
  return map_ints([&](std::size_t j) { return static_cast<std::uint32_t>(x.lanes[j]) << count; });
}
[[HEARTH_INLINE]] inline Ints shift_right(const Ints& x, int count) {
  return map_ints([&](std::size_t j) { return static_cast<std::uint32_t>(x.lanes[j]) >> count; });
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
  return map_codes([&](std::size_t i) { return a.bytes[i] | b.bytes[i]; });
}
/// May leave bits of a neighbour in the top of a byte.
[[HEARTH_INLINE]] inline Codes shift_bytes_right(const Codes& x, int count) {
  return map_codes([&](std::size_t i) { return x.bytes[i] >> count; });
}
/// The bits of each byte that `mask` has after bit `from` comes to its bit 0, moved up to bit `to`.
template <int from, int to, int mask>
[[HEARTH_INLINE]] inline Codes bits(const Codes& x) {
  return map_codes([&](std::size_t i) { return ((x.bytes[i] >> from) & mask) << to; });
}
/// values[index], for indices below 16.
[[HEARTH_INLINE]] inline Codes look_up(const std::array<std::int8_t, 16>& values,
                                       const Codes& indices) {
  return map_codes([&](std::size_t i) { return values[indices.bytes[i]]; });
}

/// What offset_signed() adds to signed codes, for machines that multiply unsigned bytes by signed
/// ones only. The sums of dot_signed() are too large by as many times the activations' sum.
inline constexpr std::int32_t signed_bias = 0;

[[HEARTH_INLINE]] inline Codes offset_signed(const Codes& x) {
  return x;
}
/// sum[j] + the four codes of row j, 0...127 each, times x[0...3].
[[HEARTH_INLINE]] inline Ints dot(const Codes& codes, const std::int8_t* x, const Ints& sum) {
  return map_ints([&](std::size_t j) {
    std::int32_t total = sum.lanes[j];
    for (std::size_t i = 0; i < 4; ++i) {
      total += codes.bytes[4 * j + i] * x[i];
    }
    return total;
  });
}
/// The same with codes -128...127 that went through offset_signed().
[[HEARTH_INLINE]] inline Ints dot_signed(const Codes& codes, const std::int8_t* x,
                                         const Ints& sum) {
  return map_ints([&](std::size_t j) {
    std::int32_t total = sum.lanes[j];
    for (std::size_t i = 0; i < 4; ++i) {
      total += static_cast<std::int8_t>(codes.bytes[4 * j + i]) * x[i];
    }
    return total;
  });
}
/// sum[j] + the low and high 16-bit halves of pairs[j] times x[0] and x[1].
[[HEARTH_INLINE]] inline Ints dot_pairs(const Ints& pairs, const std::int16_t* x, const Ints& sum) {
  return map_ints([&](std::size_t j) {
    const auto low = static_cast<std::int16_t>(pairs.lanes[j]);
    const auto high = static_cast<std::int16_t>(pairs.lanes[j] >> 16);
    return sum.lanes[j] + low * x[0] + high * x[1];
  });
}
