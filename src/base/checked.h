#pragma once
/// Arithmetic on counts and offsets that come from files or requests: nothing wraps.

#include <concepts>
#include <cstdint>
#include <optional>

namespace hearth {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) {
  T sum{};
  return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional<T>(sum);
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) {
  T product{};
  return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional<T>(product);
}

/// The smallest multiple of `multiple` (a power of two) that is >= `value`.
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_round_up(std::uint64_t value,
                                                                      std::uint64_t multiple) {
  const auto padded = checked_add(value, multiple - 1);
  return padded ? std::optional<std::uint64_t>(*padded & ~(multiple - 1)) : std::nullopt;
}

/// For sizes already known to be small: the same without the check.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace hearth
