#include "graph/ops/softcap.h"

#include "base/fail.h"
#include "base/math.h"
#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> Softcap::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                 std::int64_t) const {
  if (!(cap > 0)) {
    return fail(ErrorCode::invalid_argument, "softcap: cap is {}, expected more than 0", cap);
  }
  return inputs[0];
}

void Softcap::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    out.data[i] = cap * canonical_tanh(inputs[0].data[i] / cap);
  }
}

ValueId softcap(GraphBuilder& g, float cap, ValueId x) {
  return g.add(Softcap{cap}, {x});
}

}  // namespace hearth::graph
