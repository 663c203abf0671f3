#include "plan/passes/passes.h"
#include "plan/passes/uses.h"

namespace hearth::plan {
namespace {

/// The product by chosen experts that writes `value` and that only one launch reads.
const OpLaunch* single_use_product(const Draft& draft, const Uses& uses, graph::ValueId value) {
  const auto& launch = draft.launches[uses.writer(value)];
  return as_op<graph::ExpertMatMul>(launch) != nullptr && uses.only_reader(value)
             ? &std::get<OpLaunch>(launch)
             : nullptr;
}

/// activation(gate) * up, both products of one input by one routing, becomes an ExpertGate in the
/// place of the mul.
void fuse_gate(Draft& draft, const Uses& uses, Launch& launch, std::set<std::size_t>& dropped) {
  const auto& mul = std::get<OpLaunch>(launch);
  const std::size_t activation_at = uses.writer(mul.inputs[0]);
  const auto* activation = as_op<graph::Activation>(draft.launches[activation_at]);
  if (activation == nullptr || !uses.only_reader(mul.inputs[0])) {
    return;
  }
  const graph::ValueId gate_value = reads(draft.launches[activation_at]).front();
  const OpLaunch* gate = single_use_product(draft, uses, gate_value);
  const OpLaunch* up = single_use_product(draft, uses, mul.inputs[1]);
  if (gate == nullptr || up == nullptr || gate->inputs != up->inputs) {
    return;
  }
  dropped.insert({activation_at, uses.writer(gate_value), uses.writer(mul.inputs[1])});
  launch = ExpertGate{.input = gate->inputs[0],
                      .routing = gate->inputs[1],
                      .norm = {},
                      .gate = std::get<graph::ExpertMatMul>(gate->op),
                      .up = std::get<graph::ExpertMatMul>(up->op),
                      .kind = activation->kind,
                      .output = mul.output};
}

/// The sum of a product by chosen experts becomes an ExpertDown.
void fuse_down(const Draft& draft, const Uses& uses, Launch& launch,
               std::set<std::size_t>& dropped) {
  const auto& sum = std::get<OpLaunch>(launch);
  const OpLaunch* down = single_use_product(draft, uses, sum.inputs[0]);
  if (down == nullptr || down->inputs[1] != sum.inputs[1]) {
    return;
  }
  dropped.insert(uses.writer(sum.inputs[0]));
  launch = ExpertDown{.input = down->inputs[0],
                      .routing = down->inputs[1],
                      .down = std::get<graph::ExpertMatMul>(down->op),
                      .residual = {},
                      .output = sum.output};
}

}  // namespace

void fuse_experts(Draft& draft) {
  const Uses uses(draft);
  std::set<std::size_t> dropped;
  std::vector<Launch> fused = draft.launches;
  for (auto& launch : fused) {
    if (as_op<graph::Mul>(launch) != nullptr) {
      fuse_gate(draft, uses, launch, dropped);
    } else if (as_op<graph::ExpertSum>(launch) != nullptr) {
      fuse_down(draft, uses, launch, dropped);
    }
  }
  draft.launches = std::move(fused);
  erase_launches(draft.launches, dropped);
}

}  // namespace hearth::plan
