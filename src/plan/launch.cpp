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
            if (projection.residual) {
              ids.push_back(*projection.residual);
            }
            return ids;
          },
          [](const AttentionBlock& block) { return std::vector{block.q, block.k, block.v}; },
          [](const NormAdd& add) { return std::vector{add.input, add.residual}; },
      },
      launch);
}

std::vector<ValueId> writes(const Launch& launch) {
  return std::visit(Overloaded{
                        [](const Projection& projection) {
                          if (projection.gate || projection.residual) {
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
                    },
                    launch);
}

std::string_view launch_name(const Launch& launch) {
  return std::visit(Overloaded{
                        [](const OpLaunch& op) { return graph::op_name(op.op); },
                        [](const Projection&) { return std::string_view("projection"); },
                        [](const AttentionBlock&) { return std::string_view("attention_block"); },
                        [](const NormAdd&) { return std::string_view("norm_add"); },
                    },
                    launch);
}

}  // namespace hearth::plan
