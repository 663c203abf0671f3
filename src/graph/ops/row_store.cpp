#include "graph/ops/row_store.h"

#include <algorithm>

#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> StoreRows::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                   std::int64_t) const {
  return inputs[0];
}

void StoreRows::run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const {
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const std::int64_t place = context.step.row_targets[static_cast<std::size_t>(i)];
    if (place >= 0) {
      std::copy_n(inputs[0].row(i), out.features, context.rows.row(place));
    }
    std::copy_n(inputs[0].row(i), out.features, out.row(i));
  }
}

Result<ValueDesc> LoadRows::infer(std::span<const ValueDesc>, const WeightTable&,
                                  std::int64_t n_rows) const {
  return ValueDesc{RowAxis::batch, n_rows, features};
}

void LoadRows::run(const OpContext& context, std::span<const ConstRows>, Rows out) const {
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const std::int64_t place = context.step.row_sources[static_cast<std::size_t>(i)];
    std::copy_n(context.rows.row(place), out.features, out.row(i));
  }
}

ValueId store_rows(GraphBuilder& g, ValueId x) {
  return g.add(StoreRows{}, {x});
}

ValueId load_rows(GraphBuilder& g, std::int64_t features) {
  return g.add(LoadRows{features}, {});
}

}  // namespace hearth::graph
