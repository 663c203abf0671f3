#include "graph/ops/activation.h"

#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> Activation::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                    std::int64_t) const {
  return inputs[0];
}

void Activation::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  const float* x = inputs[0].data;
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    out.data[i] = activate(kind, x[i]);
  }
}

ValueId activation(GraphBuilder& g, ActivationKind kind, ValueId x) {
  return g.add(Activation{kind}, {x});
}

}  // namespace hearth::graph
