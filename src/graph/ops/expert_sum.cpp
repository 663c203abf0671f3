#include "graph/ops/expert_sum.h"

#include <cmath>

#include "base/fail.h"
#include "graph/builder.h"
#include "graph/ops/router.h"

namespace hearth::graph {

Result<ValueDesc> ExpertSum::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                   std::int64_t) const {
  const std::int64_t n_used = inputs[1].features / 2;
  if (n_used < 1 || inputs[0].features % n_used != 0) {
    return fail(ErrorCode::invalid_argument, "expert_sum: {} features do not divide into {} slots",
                inputs[0].features, n_used);
  }
  return ValueDesc{inputs[0].axis, inputs[0].rows, inputs[0].features / n_used};
}

void ExpertSum::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  const std::int64_t n_used = inputs[1].features / 2;
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const Routing routing(inputs[1].row(row), n_used);
    for (std::int64_t i = 0; i < out.features; ++i) {
      float sum = 0;
      for (std::int64_t slot = 0; slot < n_used; ++slot) {
        sum = std::fma(routing.weights[slot], inputs[0].row(row)[slot * out.features + i], sum);
      }
      out.row(row)[i] = sum;
    }
  }
}

ValueId expert_sum(GraphBuilder& g, ValueId x, ValueId routing) {
  return g.add(ExpertSum{}, {x, routing});
}

}  // namespace hearth::graph
