#include "backend/gpu/kernels/router.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;

void expect_reference(const Matrix& logits, std::int64_t n_used) {
  const auto expected = graph::run_op(graph::Router{n_used}, {}, {logits}).value();
  const auto results = run_everywhere(
      call(KernelId::router_f32,
           {contents(logits.data), poisoned(static_cast<std::size_t>(logits.rows * 2 * n_used))},
           RouterParams{static_cast<u32>(logits.features), static_cast<u32>(n_used)},
           {static_cast<u32>(logits.rows)}, {128}));
  const auto routing = values<float>(results[1]);
  for (std::size_t i = 0; i < routing.size(); ++i) {
    const bool is_expert = i / static_cast<std::size_t>(n_used) % 2 == 0;
    if (is_expert) {
      EXPECT_EQ(routing[i], expected.data[i]) << i;
    } else if (std::isnan(expected.data[i])) {
      EXPECT_TRUE(std::isnan(routing[i])) << i;
    } else {
      EXPECT_NEAR(routing[i], expected.data[i], 1e-6f) << i;
    }
  }
}

TEST(GpuRouter, ChoosesTheReferenceExperts) {
  for (const std::int64_t n_experts : {8, 100, 256}) {
    Matrix logits = graph::random_matrix(3, n_experts, 1);
    for (float& value : logits.data) {
      value *= 5.0f;
    }
    expect_reference(logits, 8);
  }
}

TEST(GpuRouter, GivesEqualExpertsToTheLowestNumbers) {
  expect_reference({1, 40, std::vector<float>(40, 0.25f)}, 4);
  expect_reference({1, 5, {1.0f, 5.0f, 1.0f, 5.0f, 5.0f}}, 4);
}

TEST(GpuRouter, LetsANanReachTheWeightsAndChoosesKnownExperts) {
  expect_reference({1, 40,
                    [] {
                      std::vector<float> logits(40, 1.0f);
                      logits[17] = NAN;
                      return logits;
                    }()},
                   4);
}

}  // namespace
}  // namespace hearth::backend::gpu
