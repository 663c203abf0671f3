#include "backend/gpu/kernels/expert_gate.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/ops/router.h"
#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::ActivationKind;
using graph::Matrix;
using graph::random_matrix;

constexpr std::int64_t n_used = 3;
constexpr std::int64_t n_out = 37;
constexpr std::int64_t first_up = 48;  // row of an expert: a whole number of strips
constexpr float eps = 1e-5f;

/// The kernels for so many rows: of one those for all types, and that for the matrices' own if it
/// chooses among so few.
std::vector<KernelId> gate_kernels(std::int64_t rows, std::string_view type,
                                   const ExpertGateParams& params) {
  if (rows > 1) {
    return {KernelId::expert_gate_rows};
  }
  std::vector<KernelId> kernels{KernelId::expert_gate_rows, KernelId::expert_gate};
  if (params.n_experts <= GATE_TYPE_MAX_EXPERTS && params.n_used <= GATE_TYPE_MAX_USED) {
    kernels.push_back(kernel_for_type("expert_gate_", type));
  }
  return kernels;
}

struct GateType {
  std::string_view name;
  std::int64_t n_in;
  std::int64_t n_experts;
};

class GpuExpertGateTypes : public testing::TestWithParam<GateType> {
 protected:
  [[nodiscard]] Matrix op(const graph::AnyOp& op, const std::vector<Matrix>& inputs) const {
    return graph::run_op(op, weights_.table(), inputs).value();
  }

  graph::RandomWeights weights_{3};
};

TEST_P(GpuExpertGateTypes, ChoosesExpertsAndMultipliesTheirGateAndUp) {
  const auto& [type, n_in, n_experts] = GetParam();
  const auto norm = weights_.add_uniform("norm", {n_in}, 0.5f, 1.5f);
  const auto both =
      weights_.add("both", quant::find(type)->dtype, {n_experts, first_up + n_out, n_in});
  struct Variant {
    std::int64_t rows;
    bool has_norm;
  };
  for (const auto& [n_rows, has_norm] :
       {Variant{1, true}, Variant{1, false}, Variant{2, true}, Variant{2, false}}) {
    const Matrix x = random_matrix(n_rows, n_in, 4);
    Matrix logits = random_matrix(n_rows, n_experts, 5);
    logits.data[1] = logits.data[0];  // a tie
    const Matrix routing = op(graph::Router{n_used}, {logits});
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
    for (const KernelId kernel : gate_kernels(n_rows, type, params)) {
      const u32 capacity =
          static_cast<u32>(n_rows) + (kernel == KernelId::expert_gate_rows ? 1 : 0);
      const auto results = run_everywhere(
          call(kernel,
               {counts(static_cast<u32>(n_rows)), contents(x.data), weights_.bytes(norm),
                contents(logits.data), tiles, tiles, poisoned(capacity * 2 * n_used),
                poisoned(capacity * n_used * n_out)},
               params, {2, n_used, capacity}, {STRIP_THREADS}));
      expect_bits(results[6], routing.data);
      expect_bits(results[7], expected.data);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuExpertGateTypes,
                         testing::Values(GateType{"Q4_K", 512, 5}, GateType{"Q5_K", 256, 300},
                                         GateType{"Q6_K", 768, 64}, GateType{"Q8_0", 512, 5},
                                         GateType{"IQ4_NL", 768, 64}, GateType{"MXFP4", 512, 64}),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// The choice and what comes of it, by experts of 16 results.
void expect_choice(const Matrix& logits, std::int64_t used) {
  constexpr std::int64_t n_in = 256;
  constexpr std::int64_t rows_of_expert = 16;
  graph::RandomWeights weights{6};
  const auto matrix = weights.add("matrix", quant::find("Q4_K")->dtype,
                                  {logits.features, 2 * rows_of_expert, n_in});
  const Matrix x = random_matrix(logits.rows, n_in, 7);
  const auto op = [&](const graph::AnyOp& any, const std::vector<Matrix>& inputs) {
    return graph::run_op(any, weights.table(), inputs).value();
  };
  const Matrix routing = op(graph::Router{used}, {logits});
  const auto product = [&](std::int64_t first_row) {
    return op(graph::ExpertMatMul{matrix, first_row, rows_of_expert}, {x, routing});
  };
  const Matrix factor = op(graph::Activation{ActivationKind::silu}, {product(0)});
  const Matrix expected = op(graph::Mul{}, {factor, product(rows_of_expert)});
  const ExpertGateParams params{.n = static_cast<u32>(n_in),
                                .n_experts = static_cast<u32>(logits.features),
                                .n_used = static_cast<u32>(used),
                                .n_out = static_cast<u32>(rows_of_expert),
                                .type = STRIP_Q4_K,
                                .expert_rows = static_cast<u32>(2 * rows_of_expert),
                                .first_row = {0, static_cast<u32>(rows_of_expert)},
                                .activation = static_cast<u32>(ActivationKind::silu),
                                .group_strips = 1};
  const Contents tiles = tiled(weights.table()[graph::index(matrix)].tensor);
  const auto n_chosen = static_cast<std::size_t>(logits.rows * used);
  for (const KernelId kernel : gate_kernels(logits.rows, "Q4_K", params)) {
    const auto results = run_everywhere(
        call(kernel,
             {counts(static_cast<u32>(logits.rows)), contents(x.data), contents(x.data),
              contents(logits.data), tiles, tiles, poisoned(2 * n_chosen),
              poisoned(n_chosen * static_cast<std::size_t>(rows_of_expert))},
             params, {1, static_cast<u32>(used), static_cast<u32>(logits.rows)}, {STRIP_THREADS}));
    expect_bits(results[6], routing.data);
    expect_bits(results[7], expected.data);
  }
}

TEST(GpuExpertGate, ChoosesAmongManyExperts) {
  for (const std::int64_t n_experts : {256, 200, 33}) {
    Matrix logits = random_matrix(1, n_experts, 8);
    for (float& value : logits.data) {
      value *= 5.0f;
    }
    expect_choice(logits, 8);
  }
  expect_choice(random_matrix(1, 256, 9), 9);  // more than by groups
}

TEST(GpuExpertGate, GivesEqualExpertsToTheLowestNumbers) {
  expect_choice({1, 256, std::vector<float>(256, 0.25f)}, 8);
  Matrix logits{1, 96, std::vector<float>(96)};
  for (std::size_t i = 0; i < 96; ++i) {
    logits.data[i] = i % 13 == 7 ? 2.0f : 1.0f;  // in all three groups
  }
  expect_choice(logits, 8);
  for (std::size_t i = 0; i < 96; ++i) {  // a bit apart, which probabilities may not be
    logits.data[i] = 1.0f + static_cast<float>(i) * 0x1p-23f;
  }
  expect_choice(logits, 8);
}

TEST(GpuExpertGate, LetsANanReachTheWeightsAndChoosesKnownExperts) {
  for (const float fault : {NAN, INFINITY}) {
    for (const std::size_t at : {0u, 77u}) {
      Matrix logits{1, 100, std::vector<float>(100, 1.0f)};
      logits.data[at] = fault;
      expect_choice(logits, 4);
    }
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
