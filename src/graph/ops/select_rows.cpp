#include "graph/ops/select_rows.h"

#include <algorithm>

#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> SelectRows::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                    std::int64_t) const {
  return ValueDesc{RowAxis::logits, n_logit_rows, inputs[0].features};
}

void SelectRows::run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const {
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const float* source = inputs[0].row(context.step.logit_rows[static_cast<std::size_t>(i)]);
    std::copy_n(source, out.features, out.row(i));
  }
}

ValueId select_rows(GraphBuilder& g, ValueId x) {
  return g.add(SelectRows{g.bucket().logit_rows}, {x});
}

}  // namespace hearth::graph
