#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"

namespace hearth {

/// Owned, zero-filled, 64-byte aligned host memory. Move-only. Pages are only touched when used.
/// Running out of memory is std::bad_alloc: sizes are checked against the memory plan before they
/// get here.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t n_bytes);
  Buffer(Buffer&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer();

  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }

  /// The memory seen as an array of T (f32 activations, int8 codes).
  template <class T>
  [[nodiscard]] T* data(std::int64_t offset_bytes = 0) {
    return as_array<T>(bytes_.data() + offset_bytes);
  }
  template <class T>
  [[nodiscard]] const T* data(std::int64_t offset_bytes = 0) const {
    return as_array<T>(bytes().data() + offset_bytes);
  }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace hearth
