#include "graph/ops/op_context.h"

#include "base/fail.h"

namespace hearth::graph {

Result<void> expect_weight_shape(std::string_view op, const WeightTable& weights, WeightId id,
                                 const Shape& expected) {
  const auto& weight = weights[index(id)];
  if (weight.tensor.shape != expected) {
    return fail(ErrorCode::invalid_file, "{}: tensor '{}' has shape {}, expected {}", op,
                weight.name, to_string(weight.tensor.shape), to_string(expected));
  }
  return {};
}

}  // namespace hearth::graph
