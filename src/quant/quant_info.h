#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/dtype.h"

namespace hearth::quant {

/// What a reader must know of a tensor type: its name and the size of its blocks.
struct QuantInfo {
  std::string_view name;         // as the field writes it: "Q4_K"
  DType dtype{};                 // GGUF's tensor type number, if it has one
  std::int64_t block_weights{};  // consecutive elements of one row that share a block
  std::int64_t block_bytes{};
  bool is_in_files = true;  // false: blocks are made while a model is opened, GGUF has no number

  [[nodiscard]] constexpr double bits_per_weight() const {
    return 8.0 * static_cast<double>(block_bytes) / static_cast<double>(block_weights);
  }
};

}  // namespace hearth::quant
