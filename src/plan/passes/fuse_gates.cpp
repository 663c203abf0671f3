#include <utility>

#include "plan/passes/passes.h"
#include "plan/passes/uses.h"

namespace hearth::plan {
namespace {

/// The launches activation(gate) and mul(that, up).
struct GateOps {
  std::size_t activation;
  std::size_t mul;
};

/// The gate that combines two parts, if nothing else reads them or the value between.
std::optional<GateOps> find_gate(const Draft& draft, const Uses& uses, graph::ValueId gate,
                                 graph::ValueId up) {
  const auto activation_at = uses.only_reader(gate);
  const auto mul_at = uses.only_reader(up);
  if (!activation_at || !mul_at ||
      as_op<graph::Activation>(draft.launches[*activation_at]) == nullptr ||
      as_op<graph::Mul>(draft.launches[*mul_at]) == nullptr) {
    return std::nullopt;
  }
  const graph::ValueId activated = writes(draft.launches[*activation_at]).front();
  return uses.only_reader(activated) == mul_at ? std::optional(GateOps{*activation_at, *mul_at})
                                               : std::nullopt;
}

}  // namespace

void fuse_gates(Draft& draft) {
  const Uses uses(draft);
  std::set<std::size_t> dropped;
  for (auto& launch : draft.launches) {
    auto* projection = std::get_if<Projection>(&launch);
    if (projection == nullptr || projection->parts.size() != 2) {
      continue;
    }
    auto& parts = projection->parts;
    auto found = find_gate(draft, uses, parts[0].output, parts[1].output);
    if (!found) {
      found = find_gate(draft, uses, parts[1].output, parts[0].output);
      if (!found) {
        continue;
      }
      std::swap(parts[0], parts[1]);  // the gate comes first
    }
    projection->gate = as_op<graph::Activation>(draft.launches[found->activation])->kind;
    projection->output = writes(draft.launches[found->mul]).front();
    dropped.insert({found->activation, found->mul});
  }
  erase_launches(draft.launches, dropped);
}

}  // namespace hearth::plan
