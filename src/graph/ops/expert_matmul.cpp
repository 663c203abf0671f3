#include "graph/ops/expert_matmul.h"

#include "base/fail.h"
#include "graph/builder.h"
#include "graph/ops/matrix_product.h"
#include "graph/ops/router.h"
#include "quant/registry.h"

namespace hearth::graph {

Result<ValueDesc> ExpertMatMul::infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                                      std::int64_t /*n_rows*/) const {
  const auto& view = tensor(weights, weight);
  const std::int64_t n_used = inputs[1].features / 2;
  if (view.shape.rank() != 3 || !quant::is_float_decodable(view.dtype) || first_row < 0 ||
      n_out < 1 || first_row + n_out > view.shape[1] ||
      (view.shape.back() != inputs[0].features &&
       view.shape.back() * n_used != inputs[0].features)) {
    return fail(ErrorCode::invalid_file,
                "expert_matmul: tensor '{}' is {} {}, expected matrices of numbers [experts, {} or "
                "more, {}]",
                weights[index(weight)].name, quant::name(view.dtype), to_string(view.shape),
                first_row + n_out, inputs[0].features);
  }
  return ValueDesc{inputs[0].axis, inputs[0].rows, n_used * n_out};
}

void ExpertMatMul::run(const OpContext& context, std::span<const ConstRows> inputs,
                       Rows out) const {
  const auto& view = tensor(context.weights, weight);
  const auto& x = inputs[0];
  const std::int64_t n_in = view.shape.back();
  const std::int64_t n_used = inputs[1].features / 2;
  const std::int64_t row_bytes = quant::row_bytes(view.dtype, n_in);
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const Routing routing(inputs[1].row(row), n_used);
    for (std::int64_t slot = 0; slot < n_used; ++slot) {
      const std::int64_t first = routing.expert(slot) * view.shape[1] + first_row;
      const float* slot_x = x.row(row) + (x.features == n_in ? 0 : slot * n_in);
      multiply_matrix(view.dtype,
                      view.data.subspan(static_cast<std::size_t>(first * row_bytes),
                                        static_cast<std::size_t>(n_out * row_bytes)),
                      {slot_x, 1, n_in}, {out.row(row) + slot * n_out, 1, n_out});
    }
  }
}

ValueId expert_matmul(GraphBuilder& g, const ExpertMatMul& matmul, ValueId x, ValueId routing) {
  return g.add(matmul, {x, routing});
}

}  // namespace hearth::graph
