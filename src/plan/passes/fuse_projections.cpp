#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "plan/passes/passes.h"
#include "plan/passes/uses.h"

namespace hearth::plan {
namespace {

/// Whether this launch reads `value` and can norm it by itself.
bool is_expert_gate_of(const Launch& launch, graph::ValueId value) {
  const auto* gate = std::get_if<ExpertGate>(&launch);
  return gate != nullptr && gate->input == value;
}

/// The full-row RMSNorm that writes `value`, if all readers of `value` are in `group` or norm it by
/// themselves.
const OpLaunch* absorbable_norm(const Draft& draft, const Uses& uses, graph::ValueId value,
                                const std::vector<std::size_t>& group) {
  const auto& launch = draft.launches[uses.writer(value)];
  const auto* norm = as_op<graph::RmsNorm>(launch);
  const auto& readers = uses.readers(value);
  const bool all_absorb = std::all_of(readers.begin(), readers.end(), [&](std::size_t reader) {
    return std::find(group.begin(), group.end(), reader) != group.end() ||
           is_expert_gate_of(draft.launches[reader], value);
  });
  if (norm == nullptr || value == draft.result || !all_absorb) {
    return nullptr;
  }
  const bool full_row = draft.weights[graph::index(norm->weight)].tensor.shape.back() ==
                        draft.values[graph::index(value)].features;
  return full_row ? &std::get<OpLaunch>(launch) : nullptr;
}

}  // namespace

void fuse_projections(Draft& draft) {
  const Uses uses(draft);
  std::set<std::size_t> dropped;
  std::vector<Launch> fused = draft.launches;
  for (std::size_t i = 0; i < draft.launches.size(); ++i) {
    if (as_op<graph::MatMul>(draft.launches[i]) == nullptr || dropped.contains(i)) {
      continue;
    }
    const graph::ValueId input = reads(draft.launches[i]).front();
    // All matmuls of this input, at the place of the first: their input is ready there.
    std::vector<std::size_t> group;
    std::copy_if(uses.readers(input).begin(), uses.readers(input).end(), std::back_inserter(group),
                 [&](std::size_t reader) {
                   return as_op<graph::MatMul>(draft.launches[reader]) != nullptr;
                 });
    Projection projection{.input = input};
    for (const auto member : group) {
      const auto& single = std::get<OpLaunch>(draft.launches[member]);
      projection.parts.push_back({std::get<graph::MatMul>(single.op), single.output});
      dropped.insert(member);
    }
    dropped.erase(i);
    if (const auto* norm = absorbable_norm(draft, uses, input, group)) {
      projection.norm = std::get<graph::RmsNorm>(norm->op);
      projection.input = norm->inputs.front();
      for (const auto reader : uses.readers(input)) {
        if (is_expert_gate_of(draft.launches[reader], input)) {
          auto& gate = std::get<ExpertGate>(fused[reader]);
          gate.norm = projection.norm;
          gate.input = projection.input;
        }
      }
      dropped.insert(uses.writer(input));
    }
    fused[i] = std::move(projection);
  }
  draft.launches = std::move(fused);
  erase_launches(draft.launches, dropped);
}

}  // namespace hearth::plan
