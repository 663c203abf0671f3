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
  const auto n_rows = static_cast<u32>(logits.rows);
  const auto results =
      run_everywhere(call(KernelId::router_f32,
                          {counts(n_rows), contents(logits.data),
                           poisoned(static_cast<std::size_t>((logits.rows + 1) * 2 * n_used))},
                          RouterParams{static_cast<u32>(logits.features), static_cast<u32>(n_used)},
                          {n_rows + 1}, {128}));
  expect_bits(results[2], expected.data);
}

TEST(GpuRouter, GivesTheBitsOfTheReference) {
  for (const std::int64_t n_experts : shapes<std::int64_t>({8, 256, 100})) {
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

// Logits a bit apart may have the same probability, and then the order of numbers decides.
TEST(GpuRouter, ComparesProbabilitiesNotLogits) {
  Matrix logits{1, 64, std::vector<float>(64)};
  for (std::size_t i = 0; i < 64; ++i) {
    logits.data[i] = 1.0f + static_cast<float>(i) * 0x1p-23f;
  }
  expect_reference(logits, 8);
}

TEST(GpuRouter, LetsANanReachTheWeightsAndChoosesKnownExperts) {
  for (const float fault : {NAN, INFINITY}) {
    for (const std::size_t at : {0u, 17u}) {
      Matrix logits{2, 40, std::vector<float>(80, 1.0f)};
      logits.data[at] = fault;
      expect_reference(logits, 4);
    }
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
