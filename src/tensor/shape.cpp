#include "tensor/shape.h"

#include <algorithm>

#include "base/assert.h"

namespace hearth {

Shape::Shape(std::span<const std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  HEARTH_ASSERT(dims.size() <= max_rank);
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const auto dim : dims()) {
    product *= dim;
  }
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(shape[axis]);
  }
  return text + "]";
}

}  // namespace hearth
