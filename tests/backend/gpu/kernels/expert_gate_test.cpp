#include "backend/gpu/kernels/expert_gate.h"

#include <string>

#include <gtest/gtest.h>

#include "graph/ops/router.h"
#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::ActivationKind;
using graph::Matrix;
using graph::random_matrix;

constexpr std::int64_t n_rows = 2;
constexpr std::int64_t n_used = 3;
constexpr std::int64_t n_out = 37;
constexpr std::int64_t first_up = 48;  // row of an expert: a whole number of strips
constexpr float eps = 1e-5f;

struct GateType {
  std::string_view name;
  std::int64_t n_in;
  std::int64_t n_experts;
};

class GpuExpertGate : public testing::TestWithParam<GateType> {
 protected:
  [[nodiscard]] Matrix op(const graph::AnyOp& op, const std::vector<Matrix>& inputs) const {
    return graph::run_op(op, weights_.table(), inputs).value();
  }

  graph::RandomWeights weights_{3};
};

TEST_P(GpuExpertGate, ChoosesExpertsAndMultipliesTheirGateAndUp) {
  const auto& [type, n_in, n_experts] = GetParam();
  const auto norm = weights_.add_uniform("norm", {n_in}, 0.5f, 1.5f);
  const auto both =
      weights_.add("both", quant::find(type)->dtype, {n_experts, first_up + n_out, n_in});
  const Matrix x = random_matrix(n_rows, n_in, 4);
  Matrix logits = random_matrix(n_rows, n_experts, 5);
  logits.data[1] = logits.data[0];  // a tie
  const Matrix routing = op(graph::Router{n_used}, {logits});
  for (const bool has_norm : {true, false}) {
    const Matrix input = has_norm ? op(graph::RmsNorm{norm, eps}, {x}) : x;
    const auto product = [&](std::int64_t first_row) {
      return op(graph::ExpertMatMul{both, first_row, n_out}, {input, routing});
    };
    const Matrix factor = op(graph::Activation{ActivationKind::silu}, {product(0)});
    const Matrix expected = op(graph::Mul{}, {factor, product(first_up)});
    const ExpertGateParams params{.n = static_cast<u32>(n_in),
                                  .has_norm = has_norm ? 1u : 0u,
                                  .eps = eps,
                                  .n_experts = static_cast<u32>(n_experts),
                                  .n_used = n_used,
                                  .n_out = n_out,
                                  .type = strip_number(type),
                                  .expert_rows = 2 * first_up,
                                  .first_row = {0, first_up},
                                  .activation = static_cast<u32>(ActivationKind::silu),
                                  .group_strips = 2};
    const Contents tiles = tiled(weights_.table()[graph::index(both)].tensor);
    const auto results = run_everywhere(
        call(KernelId::expert_gate,
             {counts(n_rows), contents(x.data), weights_.bytes(norm), contents(logits.data), tiles,
              tiles, poisoned((n_rows + 1) * 2 * n_used), poisoned((n_rows + 1) * n_used * n_out)},
             params, {2, n_used, n_rows + 1}, {STRIP_THREADS}));
    expect_bits(results[6], routing.data);
    expect_bits(results[7], expected.data);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuExpertGate,
                         testing::Values(GateType{"Q4_K", 512, 5}, GateType{"Q5_K", 256, 300},
                                         GateType{"Q6_K", 768, 64}, GateType{"Q8_0", 512, 5},
                                         GateType{"IQ4_NL", 768, 64}, GateType{"MXFP4", 512, 64}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace hearth::backend::gpu
