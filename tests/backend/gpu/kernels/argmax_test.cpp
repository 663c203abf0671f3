#include "backend/gpu/kernels/argmax.h"

#include <cmath>

#include <gtest/gtest.h>

#include "graph/ops/argmax.h"
#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;

/// The op's result has to have the bits of the reference, and a row behind it has to stay as it is.
void expect_same_bits(const Matrix& x, std::int64_t n_columns) {
  const auto n_rows = static_cast<u32>(x.rows);
  const auto columns = static_cast<u32>(n_columns);
  const ArgmaxParams params{static_cast<u32>(x.features), 1, columns,
                            (columns + ARGMAX_PART - 1) / ARGMAX_PART};
  const auto parts = run_everywhere(call(KernelId::argmax_part_f32,
                                         {counts(9, n_rows), contents(x.data),
                                          poisoned((std::size_t{n_rows} + 1) * params.n_parts * 2)},
                                         params, {params.n_parts, n_rows + 1}, {256}));
  const auto results = run_everywhere(
      call(KernelId::argmax_f32,
           {counts(9, n_rows), parts[2], contents(std::vector<u32>(2 * (n_rows + 1), 7)),
            contents(std::vector<u32>(n_rows + 1, 7))},
           params, {n_rows + 1}, {32}));
  const Matrix expected = graph::run_op(graph::Argmax{n_columns}, {}, {x}).value();
  auto bits = values<u32>(results[2]);
  EXPECT_EQ(std::vector(bits.end() - 2, bits.end()), (std::vector<u32>{7, 7}));
  bits.resize(bits.size() - 2);
  EXPECT_EQ(bits, values<u32>(contents(expected.data)));
  std::vector<u32> chosen;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    chosen.push_back(static_cast<u32>(expected.at(row, 0)));
  }
  chosen.push_back(7);
  EXPECT_EQ(values<u32>(results[3]), chosen);
}

TEST(GpuArgmax, FindsTheLargestWhereverItIs) {
  Matrix x = graph::random_matrix(4, ARGMAX_PART + 300, 1);
  const std::vector<std::size_t> places{0, ARGMAX_PART - 1, ARGMAX_PART, ARGMAX_PART + 299};
  for (std::size_t row = 0; row < 4; ++row) {
    x.data[row * (ARGMAX_PART + 300) + places[row]] = 2.0f;
  }
  expect_same_bits(x, x.features);
}

TEST(GpuArgmax, LeavesFurtherColumnsOut) {
  for (const std::int64_t n_columns : {1, 31, 2048, 2049, 2300}) {
    Matrix x = graph::random_matrix(2, 2348, 2);
    x.data[static_cast<std::size_t>(n_columns)] = 9.0f;
    x.data.back() = NAN;
    expect_same_bits(x, n_columns);
  }
}

TEST(GpuArgmax, TakesTheLowestOfEqualColumns) {
  constexpr std::size_t n = std::size_t{2} * ARGMAX_PART;
  Matrix x{3, n, std::vector<float>(3 * n, -INFINITY)};
  for (const std::size_t column : std::initializer_list<std::size_t>{70, 300, ARGMAX_PART + 5}) {
    x.data[column] = 1.0f;
  }
  x.data[n + 40] = -0.0f;
  x.data[n + 3000] = 0.0f;
  expect_same_bits(x, n);
}

TEST(GpuArgmax, TakesTheFirstThatIsNoNumber) {
  constexpr std::size_t n = std::size_t{2} * ARGMAX_PART;
  for (const float wrong : {NAN, -NAN, INFINITY}) {
    for (const std::size_t column : std::initializer_list<std::size_t>{0, 33, 2047, 2048, n - 1}) {
      Matrix x = graph::random_matrix(1, n, 3);
      x.data[column] = wrong;
      x.data.back() = INFINITY;
      x.data[n - 2] = NAN;
      x.data[n - 3] = 1e30f;
      expect_same_bits(x, n);
    }
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
