#include "graph/ops/concat.h"

#include <algorithm>

#include "base/fail.h"
#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> Concat::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                std::int64_t) const {
  if (inputs[0].axis != inputs[1].axis || inputs[0].rows != inputs[1].rows) {
    return fail(ErrorCode::invalid_argument, "concat: operands have {} and {} rows, expected equal",
                inputs[0].rows, inputs[1].rows);
  }
  return ValueDesc{inputs[0].axis, inputs[0].rows, inputs[0].features + inputs[1].features};
}

void Concat::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  for (std::int64_t i = 0; i < out.rows; ++i) {
    float* rest = std::copy_n(inputs[0].row(i), inputs[0].features, out.row(i));
    std::copy_n(inputs[1].row(i), inputs[1].features, rest);
  }
}

ValueId concat(GraphBuilder& g, ValueId a, ValueId b) {
  return g.add(Concat{}, {a, b});
}

}  // namespace hearth::graph
