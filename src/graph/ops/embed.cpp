#include "graph/ops/embed.h"

#include "base/fail.h"
#include "graph/builder.h"
#include "quant/registry.h"

namespace hearth::graph {

Result<ValueDesc> Embed::infer(std::span<const ValueDesc> /*inputs*/, const WeightTable& weights,
                               std::int64_t n_rows) const {
  const auto& view = tensor(weights, table);
  if (view.shape.rank() != 2 || !quant::is_float_decodable(view.dtype)) {
    return fail(ErrorCode::invalid_file,
                "embed: tensor '{}' is {} {}, expected a [vocab, embed] matrix of numbers",
                weights[index(table)].name, quant::name(view.dtype), to_string(view.shape));
  }
  return ValueDesc{RowAxis::batch, n_rows, view.shape.back()};
}

void Embed::run(const OpContext& context, std::span<const ConstRows> /*inputs*/, Rows out) const {
  const auto& view = tensor(context.weights, table);
  const auto row_bytes = static_cast<std::size_t>(quant::row_bytes(view.dtype, out.features));
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const auto token = static_cast<std::size_t>(context.step.tokens[static_cast<std::size_t>(row)]);
    const std::span<float> x(out.row(row), static_cast<std::size_t>(out.features));
    quant::decode(view.dtype, view.data.subspan(token * row_bytes, row_bytes), x);
    for (float& value : x) {
      value *= scale;
    }
  }
}

ValueId embed(GraphBuilder& g, WeightId table, float scale) {
  return g.add(Embed{table, scale}, {});
}

}  // namespace hearth::graph
