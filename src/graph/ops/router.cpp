#include "graph/ops/router.h"

#include <vector>

#include "base/fail.h"
#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> Router::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                std::int64_t) const {
  constexpr std::int64_t max_experts = std::int64_t{1} << 24;  // numbers that a float holds exactly
  if (n_used < 1 || n_used > inputs[0].features || inputs[0].features > max_experts) {
    return fail(ErrorCode::invalid_argument, "router: {} of {} experts, expected 1 or more of {}",
                n_used, inputs[0].features, max_experts);
  }
  return ValueDesc{inputs[0].axis, inputs[0].rows, 2 * n_used};
}

void Router::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  std::vector<float> probabilities(static_cast<std::size_t>(inputs[0].features));
  for (std::int64_t row = 0; row < out.rows; ++row) {
    route_row(inputs[0].row(row), inputs[0].features, n_used, probabilities.data(), out.row(row));
  }
}

ValueId router(GraphBuilder& g, ValueId logits, std::int64_t n_used) {
  return g.add(Router{n_used}, {logits});
}

}  // namespace hearth::graph
