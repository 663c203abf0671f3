#include "backend/gpu/kernels/row_moves.h"

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;
using graph::random_matrix;

constexpr Dim3 grid{2, 4};  // four rows, the last of which is masked; up to 128 features
constexpr Dim3 threads{64};

TEST(GpuColumns, TakesTheSameColumnsAsTheReference) {
  const Matrix x = random_matrix(3, 80, 1);
  const graph::ColumnPattern pattern{.period = 20, .start = 3, .width = 17};
  const auto expected = graph::run_op(graph::Columns{pattern}, {}, {x}).value();
  const auto results = run_everywhere(call(
      KernelId::columns_f32, {counts(3), contents(x.data), poisoned(272)},
      ColumnsParams{.n = 68, .axis = 0, .period = 20, .start = 3, .width = 17}, grid, threads));
  expect_bits(results.back(), expected.data);
}

TEST(GpuConcat, PutsRowsSideBySide) {
  const Matrix a = random_matrix(3, 33, 1);
  const Matrix b = random_matrix(3, 70, 2);
  const auto expected = graph::run_op(graph::Concat{}, {}, {a, b}).value();
  const auto results = run_everywhere(
      call(KernelId::concat_f32,
           {counts(9, 3), contents(a.data), contents(b.data), poisoned(std::size_t{4} * 103)},
           ConcatParams{.n = 103, .axis = 1, .n_a = 33}, grid, threads));
  expect_bits(results.back(), expected.data);
}

TEST(GpuGatherRows, TakesTheRowsThatWantLogits) {
  const Matrix x = random_matrix(5, 70, 1);
  graph::OwnedStep step(5);
  step.logit_rows = {0, 3, 4};
  std::vector<float> expected;
  for (const std::int32_t row : step.logit_rows) {
    expected.insert(expected.end(), x.data.begin() + std::ptrdiff_t{row} * 70,
                    x.data.begin() + (std::ptrdiff_t{row} + 1) * 70);
  }
  const auto results = run_everywhere(call(
      KernelId::gather_rows_f32,
      {counts(5, 3), contents(x.data), contents(step.logit_rows), poisoned(std::size_t{4} * 70)},
      RowMoveParams{.n = 70, .axis = 1}, grid, threads));
  expect_bits(results.back(), expected);
}

TEST(GpuRowStore, KeepsRowsWhereTheReferenceKeepsThem) {
  const Matrix x = random_matrix(3, 70, 1);
  graph::OwnedStep step(3);
  step.row_targets = {4, -1, 2};
  graph::HostRowStore store({.n_rows = 6, .features = 70});
  const auto expected = graph::run_op(graph::StoreRows{}, {}, {x}, step, store).value();
  const auto stored = run_everywhere(
      call(KernelId::store_rows_f32,
           {counts(3), contents(x.data), contents(step.row_targets),
            Contents(std::size_t{6} * 70 * sizeof(float)), poisoned(std::size_t{4} * 70)},
           RowMoveParams{.n = 70, .axis = 0}, grid, threads));
  expect_bits(stored[4], expected.data);
  expect_bits(stored[3], {store.row(0), store.row(0) + std::ptrdiff_t{6} * 70});

  step.row_sources = {2, 4, 5};
  const auto loaded = graph::run_op(graph::LoadRows{70}, {}, {}, step, store).value();
  const auto results = run_everywhere(
      call(KernelId::gather_rows_f32,
           {counts(3), stored[3], contents(step.row_sources), poisoned(std::size_t{4} * 70)},
           RowMoveParams{.n = 70, .axis = 0}, grid, threads));
  expect_bits(results.back(), loaded.data);
}

}  // namespace
}  // namespace hearth::backend::gpu
