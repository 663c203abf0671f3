#include "backend/gpu/kernels/top_k.h"

#include <cmath>

#include <gtest/gtest.h>

#include "graph/ops/top_k.h"
#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;

/// Thinned out as the executor does it: the bits of the reference, and a row behind them stays as
/// it is.
void expect_top_k(const Matrix& x, std::int64_t n_columns, u32 k) {
  const auto n_rows = static_cast<u32>(x.rows);
  TopKParams params{.n = static_cast<u32>(x.features),
                    .axis = 1,
                    .n_entries = static_cast<u32>(n_columns),
                    .k = k,
                    .n_parts = 0,
                    .are_pairs = 0};
  auto from = contents(x.data);
  do {
    params.n_parts = (params.n_entries + TOP_K_PART - 1) / TOP_K_PART;
    const u32 row_size = params.n_parts * k * 2;
    const auto results = run_everywhere(
        call(KernelId::top_k_f32,
             {counts(9, n_rows), from, contents(std::vector<u32>((n_rows + 1) * row_size, 7))},
             params, {params.n_parts, n_rows + 1}, {TOP_K_THREADS}));
    const auto words = values<u32>(results[2]);
    EXPECT_EQ(std::vector(words.end() - row_size, words.end()), std::vector<u32>(row_size, 7));
    from = contents(std::vector(words.begin(), words.end() - row_size));
    params.n = params.n_entries = params.n_parts * k;
    params.are_pairs = 1;
  } while (params.n_parts > 1);
  const Matrix expected = graph::run_op(graph::TopK{n_columns, k}, {}, {x}).value();
  EXPECT_EQ(values<u32>(from), values<u32>(contents(expected.data)));
}

TEST(GpuTopK, FindsTheLargestWhereverTheyAre) {
  Matrix x = graph::random_matrix(3, TOP_K_PART + 300, 1);
  for (const u32 column : {0u, TOP_K_PART - 1u, TOP_K_PART + 0u, TOP_K_PART + 299u}) {
    x.data[column] = 2.0f;
  }
  for (const u32 k : {1u, 3u, 4u, 128u}) {
    expect_top_k(x, x.features, k);
  }
}

TEST(GpuTopK, LeavesFurtherColumnsOut) {
  for (const std::int64_t n_columns : {128, 1000, TOP_K_PART, TOP_K_PART + 1}) {
    Matrix x = graph::random_matrix(2, TOP_K_PART + 8, 2);
    x.data[static_cast<std::size_t>(n_columns)] = 9.0f;
    x.data.back() = NAN;
    expect_top_k(x, n_columns, 128);
  }
}

TEST(GpuTopK, TakesTheLowerColumnsOfEqualValues) {
  constexpr std::size_t n = std::size_t{2} * TOP_K_PART + 1;
  Matrix x{2, n, std::vector<float>(2 * n, -INFINITY)};
  for (const std::size_t column : {std::size_t{70}, std::size_t{9000}, n - 1}) {
    x.data[column] = -0.0f;
    x.data[column - 20] = 0.0f;
    x.data[n + column] = -1e-40f;
  }
  expect_top_k(x, n, 5);
  expect_top_k(x, n, 20);
}

TEST(GpuTopK, TakesTheFirstThatAreNoNumbers) {
  Matrix x = graph::random_matrix(1, TOP_K_PART + 40, 3);
  for (const u32 column : {31u, 700u, TOP_K_PART + 3u}) {
    x.data[column] = INFINITY;
    x.data[column + 2] = column == 31 ? -NAN : NAN;
    x.data[column + 3] = 3e38f;
  }
  for (const u32 k : {1u, 2u, 5u, 7u, 60u}) {
    expect_top_k(x, x.features, k);
  }
}

TEST(GpuTopK, NeedsAThirdRoundForManyColumns) {
  const std::int64_t n = 65 * std::int64_t{TOP_K_PART} + 7;  // 66 parts of 128: more than a part
  expect_top_k(graph::random_matrix(1, n, 4), n, 128);
}

}  // namespace
}  // namespace hearth::backend::gpu
