#include "plan/passes/passes.h"
#include "plan/passes/uses.h"

namespace hearth::plan {
namespace {

/// The operand of `add` that is not `value`.
graph::ValueId other_operand(const OpLaunch& add, graph::ValueId value) {
  return add.inputs[0] == value ? add.inputs[1] : add.inputs[0];
}

/// Whether a residual may be added to what this launch writes.
bool takes_residual(const Launch& launch) {
  const auto* projection = std::get_if<Projection>(&launch);
  return std::holds_alternative<ExpertDown>(launch) ||
         (projection != nullptr && projection->parts.size() == 1 && !projection->residual);
}

}  // namespace

void fuse_residuals(Draft& draft) {
  const Uses uses(draft);
  std::set<std::size_t> dropped;
  for (std::size_t i = 0; i < draft.launches.size(); ++i) {
    auto& launch = draft.launches[i];
    const bool norm = as_op<graph::RmsNorm>(launch) != nullptr;
    if (!norm && !takes_residual(launch)) {
      continue;
    }
    const graph::ValueId result = writes(launch).front();
    const auto add_at = uses.only_reader(result);
    if (!add_at || as_op<graph::Add>(draft.launches[*add_at]) == nullptr) {
      continue;
    }
    const auto& add = std::get<OpLaunch>(draft.launches[*add_at]);
    const graph::ValueId residual = other_operand(add, result);
    if (residual == result ||
        uses.writer(residual) > i) {  // must be ready when the fused launch runs
      continue;
    }
    if (norm) {
      const auto& single = std::get<OpLaunch>(launch);
      launch =
          NormAdd{single.inputs.front(), std::get<graph::RmsNorm>(single.op), residual, add.output};
    } else if (auto* down = std::get_if<ExpertDown>(&launch)) {
      down->residual = residual;
      down->output = add.output;
    } else {
      auto& projection = std::get<Projection>(launch);
      projection.residual = residual;
      projection.output = add.output;
    }
    dropped.insert(*add_at);
  }
  erase_launches(draft.launches, dropped);
}

}  // namespace hearth::plan
