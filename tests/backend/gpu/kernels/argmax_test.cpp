#include "backend/gpu/kernels/argmax.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {
namespace {

/// The columns chosen, of which a last one is masked.
std::vector<u32> run(const graph::Matrix& logits) {
  const auto n_rows = static_cast<u32>(logits.rows);
  const auto n = static_cast<u32>(logits.features);
  const ArgmaxParams params{n, (n + ARGMAX_PART - 1) / ARGMAX_PART};
  const auto parts = run_everywhere(call(KernelId::argmax_part_f32,
                                         {counts(9, n_rows), contents(logits.data),
                                          poisoned((std::size_t{n_rows} + 1) * params.n_parts * 2)},
                                         params, {params.n_parts, n_rows + 1}, {256}));
  const auto columns =
      run_everywhere(call(KernelId::argmax_f32,
                          {counts(9, n_rows), parts[2], contents(std::vector<u32>(n_rows + 1, 7))},
                          params, {n_rows + 1}, {32}));
  return values<u32>(columns[2]);
}

TEST(GpuArgmax, FindsTheLargestWhereverItIs) {
  graph::Matrix logits = graph::random_matrix(4, ARGMAX_PART + 300, 1);
  const std::vector<u32> expected{0, ARGMAX_PART - 1, ARGMAX_PART, ARGMAX_PART + 299};
  for (std::size_t row = 0; row < 4; ++row) {
    logits.data[row * (ARGMAX_PART + 300) + expected[row]] = 2.0f;
  }
  auto columns = run(logits);
  EXPECT_EQ(columns.back(), 7u);
  columns.pop_back();
  EXPECT_EQ(columns, expected);
}

TEST(GpuArgmax, TakesTheLowestOfEqualColumnsAndTellsOfANan) {
  constexpr std::size_t n = std::size_t{2} * ARGMAX_PART;
  graph::Matrix logits{3, n, std::vector<float>(3 * n, -INFINITY)};
  for (const std::size_t column : std::initializer_list<std::size_t>{70, 300, ARGMAX_PART + 5}) {
    logits.data[column] = 1.0f;
  }
  logits.data[n + 10] = 5.0f;
  logits.data[n + ARGMAX_PART + 40] = NAN;
  EXPECT_EQ(run(logits), (std::vector<u32>{70, ARGMAX_NAN, 0, 7}));
}

}  // namespace
}  // namespace hearth::backend::gpu
