#include "graph/ops/argmax.h"

#include "base/largest_value.h"
#include "graph/builder.h"
#include "graph/ops/column_value.h"

namespace hearth::graph {

Result<ValueDesc> Argmax::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                std::int64_t) const {
  HEARTH_TRY(expect_searched_columns(name, n_columns, inputs[0].features));
  return ValueDesc{inputs[0].axis, inputs[0].rows, 2};
}

void Argmax::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const auto largest = largest_value({inputs[0].row(row), static_cast<std::size_t>(n_columns)});
    out.row(row)[0] = static_cast<float>(largest.index);
    out.row(row)[1] = largest.value;
  }
}

ValueId argmax(GraphBuilder& g, ValueId x, std::int64_t n_columns) {
  return g.add(Argmax{n_columns}, {x});
}

}  // namespace hearth::graph
