#include "graph/ops/matmul.h"

#include "base/fail.h"
#include "graph/builder.h"
#include "graph/ops/matrix_product.h"
#include "quant/registry.h"

namespace hearth::graph {

Result<ValueDesc> MatMul::infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                                std::int64_t /*n_rows*/) const {
  const auto& view = tensor(weights, weight);
  if (view.shape.rank() != 2 || view.shape.back() != inputs[0].features ||
      !quant::is_float_decodable(view.dtype)) {
    return fail(ErrorCode::invalid_file,
                "matmul: tensor '{}' is {} {}, expected a matrix of numbers [out, {}]",
                weights[index(weight)].name, quant::name(view.dtype), to_string(view.shape),
                inputs[0].features);
  }
  const std::int64_t out = view.shape[0];
  if (bias) {
    HEARTH_TRY(expect_weight_shape(name, weights, *bias, Shape{out}));
    if (tensor(weights, *bias).dtype != DType::f32) {
      return fail(ErrorCode::unsupported, "matmul: bias '{}' is {}, expected F32",
                  weights[index(*bias)].name, quant::name(tensor(weights, *bias).dtype));
    }
  }
  return ValueDesc{inputs[0].axis, inputs[0].rows, out};
}

void MatMul::run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const {
  const auto& view = tensor(context.weights, weight);
  multiply_matrix(view.dtype, view.data, inputs[0], out);
  if (bias) {
    const float* b = f32_data(context.weights, *bias);
    for (std::int64_t i = 0; i < out.rows * out.features; ++i) {
      out.data[i] += b[i % out.features];
    }
  }
}

ValueId matmul(GraphBuilder& g, ValueId x, WeightId weight, std::optional<WeightId> bias) {
  return g.add(MatMul{weight, bias}, {x});
}

}  // namespace hearth::graph
