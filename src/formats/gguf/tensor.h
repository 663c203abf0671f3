#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor_view.h"

namespace hearth::formats {

/// A tensor of a GGUF file, borrowed from its bytes and checked: the type is known, the shape and
/// the data agree, the data lies inside the file and overlaps no other tensor.
struct GgufTensor {
  std::string_view name;  // 1 to 64 bytes
  DType dtype{};
  Shape shape;  // outermost first, the reverse of the file's order; unit dimensions as in the file
  Bytes data;
  std::uint64_t offset{};  // of the data in its file
  std::uint32_t shard{};   // which file of a split model, see GgufFile::shard_name()

  [[nodiscard]] TensorView view() const { return {dtype, shape, data}; }
};

}  // namespace hearth::formats
