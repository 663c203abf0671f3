#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/checked.h"

namespace hearth::backend::cpu {

/// Cuts scratch memory into arrays, each on cache lines of its own; without memory it only
/// measures.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <class T>
  T* take(std::int64_t n) {
    constexpr std::int64_t alignment = 64;
    T* array = base_ == nullptr ? nullptr : as_array<T>(base_ + used_);
    used_ += round_up(n * static_cast<std::int64_t>(sizeof(T)), alignment);
    return array;
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  std::byte* base_;
  std::int64_t used_ = 0;
};

}  // namespace hearth::backend::cpu
