#include "plan/launch.h"

namespace hearth::plan {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

void append_matmul_weights(const graph::MatMul& matmul, std::vector<WeightId>& ids) {
  ids.push_back(matmul.weight);
  if (matmul.bias) {
    ids.push_back(*matmul.bias);
  }
}

std::vector<WeightId> op_weights(const graph::AnyOp& op) {
  std::vector<WeightId> ids;
  if (const auto* norm = std::get_if<graph::RmsNorm>(&op)) {
    ids.push_back(norm->weight);
  } else if (const auto* conv = std::get_if<graph::CausalConv>(&op)) {
    ids.push_back(conv->weight);
  } else if (const auto* delta = std::get_if<graph::DeltaRule>(&op)) {
    ids = {delta->rate, delta->bias};
  } else if (const auto* matmul = std::get_if<graph::MatMul>(&op)) {
    append_matmul_weights(*matmul, ids);
  }
  return ids;
}

}  // namespace

std::vector<ValueId> reads(const Launch& launch) {
  return std::visit(
      Overloaded{
          [](const OpLaunch& op) { return op.inputs; },
          [](const Projection& projection) {
            std::vector<ValueId> ids{projection.input};
            for (const auto& gate : {projection.input_gate, projection.row_gate}) {
              if (gate) {
                ids.push_back(gate->value);
              }
            }
            if (projection.residual) {
              ids.push_back(*projection.residual);
            }
            return ids;
          },
          [](const AttentionBlock& block) { return std::vector{block.q, block.k, block.v}; },
          [](const NormAdd& add) { return std::vector{add.input, add.residual}; },
          [](const ExpertGate& gate) { return std::vector{gate.input, gate.routing}; },
          [](const ExpertDown& down) {
            std::vector<ValueId> ids{down.input, down.routing};
            if (down.residual) {
              ids.push_back(*down.residual);
            }
            return ids;
          },
      },
      launch);
}

std::vector<ValueId> writes(const Launch& launch) {
  return std::visit(Overloaded{
                        [](const Projection& projection) {
                          if (projection.has_one_output()) {
                            return std::vector{projection.output};
                          }
                          std::vector<ValueId> ids;
                          for (const auto& part : projection.parts) {
                            ids.push_back(part.output);
                          }
                          return ids;
                        },
                        [](const auto& other) { return std::vector{other.output}; },
                    },
                    launch);
}

std::vector<WeightId> weights_read(const Launch& launch) {
  return std::visit(Overloaded{
                        [](const OpLaunch& op) { return op_weights(op.op); },
                        [](const Projection& projection) {
                          std::vector<WeightId> ids;
                          if (projection.norm) {
                            ids.push_back(projection.norm->weight);
                          }
                          for (const auto& part : projection.parts) {
                            append_matmul_weights(part.matmul, ids);
                          }
                          return ids;
                        },
                        [](const AttentionBlock& block) {
                          std::vector<WeightId> ids;
                          for (const auto& norm : {block.q_norm, block.k_norm}) {
                            if (norm) {
                              ids.push_back(norm->weight);
                            }
                          }
                          return ids;
                        },
                        [](const NormAdd& add) { return std::vector{add.norm.weight}; },
                        [](const ExpertGate& gate) {
                          return gate.norm ? std::vector{gate.norm->weight}
                                           : std::vector<WeightId>();
                        },
                        [](const ExpertDown&) { return std::vector<WeightId>(); },
                    },
                    launch);
}

std::vector<graph::ExpertMatMul> expert_products(const Launch& launch) {
  if (const auto* gate = std::get_if<ExpertGate>(&launch)) {
    return {gate->gate, gate->up};
  }
  if (const auto* down = std::get_if<ExpertDown>(&launch)) {
    return {down->down};
  }
  const auto* single = std::get_if<OpLaunch>(&launch);
  const auto* matmul = single != nullptr ? std::get_if<graph::ExpertMatMul>(&single->op) : nullptr;
  return matmul != nullptr ? std::vector{*matmul} : std::vector<graph::ExpertMatMul>();
}

std::string_view launch_name(const Launch& launch) {
  return std::visit(Overloaded{
                        [](const OpLaunch& op) { return graph::op_name(op.op); },
                        [](const Projection&) { return std::string_view("projection"); },
                        [](const AttentionBlock&) { return std::string_view("attention_block"); },
                        [](const NormAdd&) { return std::string_view("norm_add"); },
                        [](const ExpertGate&) { return std::string_view("expert_gate"); },
                        [](const ExpertDown&) { return std::string_view("expert_down"); },
                    },
                    launch);
}

}  // namespace hearth::plan
