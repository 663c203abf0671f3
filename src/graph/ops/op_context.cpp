#include "graph/ops/op_context.h"

#include "base/fail.h"
#include "quant/registry.h"

namespace hearth::graph {

Result<ValueDesc> expect_equal_shapes(std::string_view op, std::span<const ValueDesc> inputs) {
  if (inputs[0] != inputs[1]) {
    return fail(ErrorCode::invalid_argument,
                "{}: operands are [{}, {}] and [{}, {}], expected the same shape", op,
                inputs[0].rows, inputs[0].features, inputs[1].rows, inputs[1].features);
  }
  return inputs[0];
}

Result<void> expect_weight_shape(std::string_view op, const WeightTable& weights, WeightId id,
                                 const Shape& expected) {
  const auto& weight = weights[index(id)];
  if (weight.tensor.shape != expected) {
    return fail(ErrorCode::invalid_file, "{}: tensor '{}' has shape {}, expected {}", op,
                weight.name, to_string(weight.tensor.shape), to_string(expected));
  }
  return {};
}

Result<void> expect_f32_weight(std::string_view op, const WeightTable& weights, WeightId id,
                               const Shape& expected) {
  HEARTH_TRY(expect_weight_shape(op, weights, id, expected));
  const auto& weight = weights[index(id)];
  if (weight.tensor.dtype != DType::f32) {
    return fail(ErrorCode::invalid_file, "{}: tensor '{}' is {}, expected F32", op, weight.name,
                quant::name(weight.tensor.dtype));
  }
  return {};
}

}  // namespace hearth::graph
