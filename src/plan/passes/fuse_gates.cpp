#include "plan/passes/passes.h"
#include "plan/passes/uses.h"

namespace hearth::plan {

void fuse_gates(Draft& draft) {
  const Uses uses(draft);
  std::set<std::size_t> dropped;
  for (auto& launch : draft.launches) {
    auto* projection = std::get_if<Projection>(&launch);
    if (projection == nullptr || projection->parts.size() != 2) {
      continue;
    }
    const graph::ValueId gate = projection->parts[0].output;
    const graph::ValueId up = projection->parts[1].output;
    const auto activation_at = uses.only_reader(gate);
    const auto mul_at = uses.only_reader(up);
    if (!activation_at || !mul_at) {
      continue;
    }
    const auto* activation = as_op<graph::Activation>(draft.launches[*activation_at]);
    if (activation == nullptr || as_op<graph::Mul>(draft.launches[*mul_at]) == nullptr) {
      continue;
    }
    const graph::ValueId activated = std::get<OpLaunch>(draft.launches[*activation_at]).output;
    const auto& mul = std::get<OpLaunch>(draft.launches[*mul_at]);
    if (uses.only_reader(activated) != mul_at || mul.inputs != std::vector{activated, up}) {
      continue;
    }
    projection->gate = activation->kind;
    projection->output = mul.output;
    dropped.insert({*activation_at, *mul_at});
  }
  erase_launches(draft.launches, dropped);
}

}  // namespace hearth::plan
