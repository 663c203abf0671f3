#include "plan/passes/passes.h"
#include "plan/passes/uses.h"

namespace hearth::plan {
namespace {

/// A gate with the launches that computed it.
struct FoundGate {
  Gate gate;
  std::set<std::size_t> absorbed;
};

/// Walks back from the operand of a mul over the single-use activation and columns that made it.
std::optional<FoundGate> find_gate(const Draft& draft, const Uses& uses, graph::ValueId operand) {
  const std::size_t at = uses.writer(operand);
  const auto* activation = as_op<graph::Activation>(draft.launches[at]);
  if (activation == nullptr || !uses.only_reader(operand)) {
    return std::nullopt;
  }
  FoundGate found{.gate = {activation->kind, reads(draft.launches[at]).front(), {}},
                  .absorbed = {at}};
  const std::size_t before = uses.writer(found.gate.value);
  const auto* columns = as_op<graph::Columns>(draft.launches[before]);
  if (columns != nullptr && uses.only_reader(found.gate.value)) {
    found.gate.columns = columns->pattern;
    found.gate.value = reads(draft.launches[before]).front();
    found.absorbed.insert(before);
  }
  return found;
}

/// The mul that writes `value`, if nothing else but `reader` reads it.
const OpLaunch* single_use_mul(const Draft& draft, const Uses& uses, graph::ValueId value,
                               std::size_t reader) {
  const auto& launch = draft.launches[uses.writer(value)];
  return as_op<graph::Mul>(launch) != nullptr && uses.only_reader(value) == reader
             ? &std::get<OpLaunch>(launch)
             : nullptr;
}

std::int64_t features(const Draft& draft, graph::ValueId value) {
  return draft.values[graph::index(value)].features;
}

}  // namespace

void fuse_input_gates(Draft& draft) {
  const Uses uses(draft);
  std::set<std::size_t> dropped;
  for (std::size_t i = 0; i < draft.launches.size(); ++i) {
    auto* projection = std::get_if<Projection>(&draft.launches[i]);
    if (projection == nullptr || projection->norm) {
      continue;
    }
    const auto* mul = single_use_mul(draft, uses, projection->input, i);
    if (mul == nullptr || features(draft, mul->inputs[0]) != features(draft, mul->inputs[1])) {
      continue;
    }
    const auto first = find_gate(draft, uses, mul->inputs[0]);
    const auto found = first ? first : find_gate(draft, uses, mul->inputs[1]);
    if (!found) {
      continue;
    }
    dropped.insert(uses.writer(projection->input));
    dropped.insert(found->absorbed.begin(), found->absorbed.end());
    projection->input = mul->inputs[first ? 1 : 0];
    projection->input_gate = found->gate;
    const std::size_t norm_at = uses.writer(projection->input);
    if (const auto* norm = as_op<graph::RmsNorm>(draft.launches[norm_at]);
        norm != nullptr && uses.only_reader(projection->input)) {
      projection->norm = *norm;
      projection->input = reads(draft.launches[norm_at]).front();
      dropped.insert(norm_at);
    }
  }
  erase_launches(draft.launches, dropped);
}

void fuse_row_gates(Draft& draft) {
  const Uses uses(draft);
  std::set<std::size_t> dropped;
  for (std::size_t i = 0; i < draft.launches.size(); ++i) {
    auto* projection = std::get_if<Projection>(&draft.launches[i]);
    if (projection == nullptr || projection->parts.size() != 1) {
      continue;
    }
    const auto mul_at = uses.only_reader(projection->parts[0].output);
    if (!mul_at || as_op<graph::Mul>(draft.launches[*mul_at]) == nullptr) {
      continue;
    }
    const auto& mul = std::get<OpLaunch>(draft.launches[*mul_at]);
    const auto found = find_gate(draft, uses, mul.inputs[1]);
    if (!found || found->gate.columns || features(draft, mul.inputs[1]) != 1 ||
        mul.inputs[0] != projection->parts[0].output || uses.writer(found->gate.value) > i) {
      continue;
    }
    projection->row_gate = found->gate;
    projection->output = mul.output;
    dropped.insert(*mul_at);
    dropped.insert(found->absorbed.begin(), found->absorbed.end());
  }
  erase_launches(draft.launches, dropped);
}

}  // namespace hearth::plan
