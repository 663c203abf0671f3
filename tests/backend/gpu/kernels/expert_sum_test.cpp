#include "backend/gpu/kernels/expert_sum.h"

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {
namespace {

TEST(GpuExpertSum, GivesTheBitsOfTheReference) {
  const graph::Matrix x = graph::random_matrix(2, 3 * 300, 1);
  const graph::Matrix routing = graph::random_matrix(2, 6, 2);
  const graph::Matrix residual = graph::random_matrix(2, 300, 3);
  const auto sum = graph::run_op(graph::ExpertSum{}, {}, {x, routing}).value();
  const auto with_residual = graph::run_op(graph::Add{}, {}, {residual, sum}).value();
  for (const auto& [has_residual, expected] : {std::pair(0u, &sum), {1u, &with_residual}}) {
    const auto results =
        run_everywhere(call(KernelId::expert_sum_f32,
                            {counts(2), contents(x.data), contents(routing.data),
                             contents(residual.data), poisoned(900)},
                            ExpertSumParams{300, 3, has_residual}, {1, 3}, {EXPERT_SUM_THREADS}));
    expect_bits(results[4], expected->data);
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
