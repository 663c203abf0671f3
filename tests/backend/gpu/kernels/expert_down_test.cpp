#include "backend/gpu/kernels/expert_down.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "base/checked.h"
#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::ActivationKind;
using graph::Matrix;
using graph::random_matrix;

constexpr std::int64_t n_used = 3;
constexpr std::int64_t n_out = 37;
constexpr std::int64_t first_row = 16;  // of an expert
constexpr u32 n_strips = 3;             // of an expert
constexpr std::int64_t n = 512;
constexpr std::int64_t shared_n = 768;

struct DownTypes {
  std::string_view experts, shared;
};

class GpuExpertDown : public testing::TestWithParam<DownTypes> {
 protected:
  void expect_said(std::int64_t n_rows);

  [[nodiscard]] Matrix op(const graph::AnyOp& op, const std::vector<Matrix>& inputs) const {
    return graph::run_op(op, weights_.table(), inputs).value();
  }

  [[nodiscard]] Contents tiles(graph::WeightId id) const {
    return tiled(weights_.table()[graph::index(id)].tensor);
  }

  graph::RandomWeights weights_{3};
};

void GpuExpertDown::expect_said(std::int64_t n_rows) {
  const auto down =
      weights_.add("down", quant::find(GetParam().experts)->dtype, {5, first_row + n_out, n});
  const auto shared =
      weights_.add("shared", quant::find(GetParam().shared)->dtype, {n_out, shared_n});
  const Matrix x = random_matrix(n_rows, n_used * n, 4);
  const Matrix residual = random_matrix(n_rows, n_out, 5);
  const Matrix shared_x = random_matrix(n_rows, shared_n, 6);
  const Matrix shared_gate = random_matrix(n_rows, shared_n, 7);
  const Matrix row_gate = random_matrix(n_rows, 1, 8);
  Matrix routing = random_matrix(n_rows, 2 * n_used, 9);
  for (std::size_t row = 0; row < static_cast<std::size_t>(n_rows); ++row) {
    for (std::size_t slot = 0; slot < n_used; ++slot) {
      routing.data[row * 2 * n_used + slot] = static_cast<float>((3 * row + 4 * slot) % 5);
    }
  }

  const Matrix said = op(graph::ExpertMatMul{down, first_row, n_out}, {x, routing});
  const Matrix sum = op(graph::ExpertSum{}, {said, routing});
  const Matrix with_residual = op(graph::Add{}, {residual, sum});
  const Matrix gated =
      op(graph::Mul{}, {op(graph::Activation{ActivationKind::silu}, {shared_gate}), shared_x});
  const Matrix share = op(graph::Activation{ActivationKind::sigmoid}, {row_gate});
  const Matrix shared_said = op(graph::Mul{}, {op(graph::MatMul{shared, {}}, {gated}), share});
  const Matrix with_shared = op(graph::Add{}, {with_residual, shared_said});

  const auto run = [&](KernelId kernel, bool has_residual, bool has_shared, u32 group_strips) {
    const ExpertDownParams params{.n = n,
                                  .n_out = n_out,
                                  .n_used = n_used,
                                  .type = strip_number(GetParam().experts),
                                  .expert_rows = 64,
                                  .first_row = first_row,
                                  .has_residual = has_residual ? 1u : 0u,
                                  .shared_n = has_shared ? static_cast<u32>(shared_n) : 0u,
                                  .shared_type = strip_number(GetParam().shared),
                                  .activation = static_cast<u32>(ActivationKind::silu),
                                  .row_activation = static_cast<u32>(ActivationKind::sigmoid),
                                  .group_strips = group_strips};
    const bool by_rows = kernel == KernelId::expert_down_rows;
    const u32 n_slots = n_used + (has_shared ? 1 : 0);
    const u32 capacity = static_cast<u32>(n_rows) + (by_rows ? 1 : 0);
    return run_everywhere(
               call(kernel,
                    {counts(static_cast<u32>(n_rows)), contents(x.data), contents(routing.data),
                     contents(residual.data), tiles(down), contents(shared_x.data),
                     contents(shared_gate.data), contents(row_gate.data), tiles(shared),
                     poisoned(capacity * n_out)},
                    params,
                    {by_rows ? static_cast<u32>(ceil_div(n_strips, group_strips)) : n_strips,
                     capacity},
                    {by_rows ? DOWN_ROWS_THREADS(n_slots) : DOWN_THREADS}))
        .back();
  };
  std::vector<KernelId> of_one_row{KernelId::expert_down,
                                   kernel_for_type("expert_down_", GetParam().experts)};
  if (n_rows > 1) {
    of_one_row.clear();
  }
  for (const KernelId kernel : of_one_row) {
    expect_bits(run(kernel, false, false, 1), sum.data);
    expect_bits(run(kernel, true, false, 1), with_residual.data);
    if (kernel == KernelId::expert_down || GetParam().experts == GetParam().shared) {
      expect_bits(run(kernel, true, true, 1), with_shared.data);
    }
  }
  for (const u32 group_strips : {1u, 2u, 3u}) {
    expect_bits(run(KernelId::expert_down_rows, false, false, group_strips), sum.data);
    expect_bits(run(KernelId::expert_down_rows, true, false, group_strips), with_residual.data);
    expect_bits(run(KernelId::expert_down_rows, true, true, group_strips), with_shared.data);
  }
}

TEST_P(GpuExpertDown, AddsTheChosenExpertsThenTheResidualThenTheSharedOne) {
  expect_said(1);
  expect_said(2);
}

INSTANTIATE_TEST_SUITE_P(Types, GpuExpertDown,
                         testing::Values(DownTypes{"Q4_K", "Q6_K"}, DownTypes{"Q6_K", "Q5_K"},
                                         DownTypes{"Q4_K", "Q4_K"}, DownTypes{"Q5_K", "Q5_K"},
                                         DownTypes{"Q6_K", "Q6_K"}, DownTypes{"IQ4_NL", "IQ4_NL"},
                                         DownTypes{"Q8_0", "Q8_0"}, DownTypes{"Q4_K", "Q8_0"},
                                         DownTypes{"Q4_0", "Q6_K"}, DownTypes{"MXFP4", "Q8_0"}),
                         [](const auto& tested) {
                           return std::string(tested.param.experts) + "And" +
                                  std::string(tested.param.shared);
                         });

}  // namespace
}  // namespace hearth::backend::gpu
