#include "graph/ops/mul.h"

#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> Mul::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                             std::int64_t) const {
  return expect_equal_shapes(name, inputs);
}

void Mul::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    out.data[i] = inputs[0].data[i] * inputs[1].data[i];
  }
}

ValueId mul(GraphBuilder& g, ValueId a, ValueId b) {
  return g.add(Mul{}, {a, b});
}

}  // namespace hearth::graph
