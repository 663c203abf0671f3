#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace hearth {

/// Up to four dimensions, outermost first: a weight is [out, in], activations are [rows, features].
/// (GGUF stores them innermost first; its reader turns them round.)
class Shape {
 public:
  static constexpr int max_rank = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  [[nodiscard]] int rank() const { return rank_; }
  /// Dimension `axis`; a negative axis counts from the innermost, so [-1] is the row length.
  [[nodiscard]] std::int64_t operator[](int axis) const {
    return dims_[static_cast<std::size_t>(axis < 0 ? rank_ + axis : axis)];
  }
  [[nodiscard]] std::int64_t back() const { return (*this)[-1]; }
  [[nodiscard]] std::span<const std::int64_t> dims() const {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }
  [[nodiscard]] std::int64_t elements() const;
  /// Elements per innermost row, and how many such rows there are: [rows, row_length] for row-wise
  /// kernels.
  [[nodiscard]] std::int64_t n_rows() const { return rank_ == 0 ? 1 : elements() / back(); }

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

/// "[4096, 11008]"
std::string to_string(const Shape& shape);

}  // namespace hearth
