#include "graph/ops/mul.h"

#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> Mul::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                             std::int64_t) const {
  const bool one_each = inputs[1].features == 1 && inputs[1].rows == inputs[0].rows &&
                        inputs[1].axis == inputs[0].axis;
  return one_each ? Result<ValueDesc>(inputs[0]) : expect_equal_shapes(name, inputs);
}

void Mul::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    const bool one_each = inputs[1].features == 1;
    out.data[i] = inputs[0].data[i] * inputs[1].data[one_each ? i / out.features : i];
  }
}

ValueId mul(GraphBuilder& g, ValueId a, ValueId b) {
  return g.add(Mul{}, {a, b});
}

}  // namespace hearth::graph
