#pragma once
/// Little-endian reads and writes over bytes of any alignment.

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace hearth {

static_assert(std::endian::native == std::endian::little,
              "file formats are read in place: little-endian hosts only");

using Bytes = std::span<const std::byte>;

/// The value stored at `offset`; the caller has checked that it lies inside `bytes`.
template <class T>
  requires std::is_trivially_copyable_v<T>
[[nodiscard]] T load(const void* bytes, std::size_t offset = 0) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(bytes) + offset, sizeof value);
  return value;
}

/// Memory seen as an array of T: the caller knows that it is aligned for T and holds such values.
template <class T>
[[nodiscard]] T* as_array(std::byte* bytes) {
  return static_cast<T*>(static_cast<void*>(bytes));
}
template <class T>
[[nodiscard]] const T* as_array(const std::byte* bytes) {
  return static_cast<const T*>(static_cast<const void*>(bytes));
}
/// And the other way.
template <class T>
[[nodiscard]] const std::byte* as_byte_array(const T* values) {
  return static_cast<const std::byte*>(static_cast<const void*>(values));
}

template <class T>
  requires std::is_trivially_copyable_v<T>
void store(void* bytes, T value, std::size_t offset = 0) {
  std::memcpy(static_cast<std::byte*>(bytes) + offset, &value, sizeof value);
}

}  // namespace hearth
