#include "graph/ops/rms_norm.h"

#include "base/fail.h"
#include "graph/builder.h"
#include "quant/registry.h"

namespace hearth::graph {

Result<ValueDesc> RmsNorm::infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                                 std::int64_t /*n_rows*/) const {
  const auto& view = tensor(weights, weight);
  if (view.dtype != DType::f32 || view.shape.rank() != 1 || view.shape.back() <= 0 ||
      inputs[0].features % view.shape.back() != 0) {
    return fail(ErrorCode::invalid_file,
                "rms_norm: tensor '{}' is {} {}, expected an F32 vector whose length divides {}",
                weights[index(weight)].name, quant::name(view.dtype), to_string(view.shape),
                inputs[0].features);
  }
  return inputs[0];
}

void RmsNorm::run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const {
  const auto& view = tensor(context.weights, weight);
  const std::int64_t n = view.shape.back();
  const float* w = f32_data(context.weights, weight);
  for (std::int64_t start = 0; start < out.rows * out.features; start += n) {
    rms_norm_run(inputs[0].data + start, w, n, eps, out.data + start);
  }
}

ValueId rms_norm(GraphBuilder& g, ValueId x, WeightId weight, float eps) {
  return g.add(RmsNorm{weight, eps}, {x});
}

}  // namespace hearth::graph
