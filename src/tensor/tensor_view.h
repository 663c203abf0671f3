#pragma once

#include "base/bytes.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hearth {

/// Borrowed tensor data in its stored format, rows one after another without padding.
struct TensorView {
  DType dtype{};
  Shape shape;
  Bytes data;
};

}  // namespace hearth
