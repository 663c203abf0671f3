#include "backend/gpu/kernels/elementwise.h"

#include <array>
#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "base/math.h"
#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;
using graph::random_matrix;

constexpr std::int64_t n = 101;
constexpr std::uint32_t capacity = 4;  // of rows, one of which is masked
constexpr std::size_t capacity_floats = std::size_t{capacity} * n;
constexpr std::array all_kinds{graph::ActivationKind::silu, graph::ActivationKind::gelu_tanh,
                               graph::ActivationKind::sigmoid};

/// Values that reach every branch of the functions, and NaN.
Matrix wide_matrix(std::uint32_t seed) {
  Matrix x = random_matrix(3, n, seed);
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    x.data[i] *= i % 3 == 0 ? 100.0f : 3.0f;
  }
  x.data[0] = 200.0f;
  x.data[1] = -200.0f;
  x.data[2] = NAN;
  x.data[3] = -0.0f;
  return x;
}

/// y of a kernel whose inputs are [rows, n] with three rows by counts[axis].
template <class Params>
Contents run(KernelId kernel, const std::vector<Matrix>& inputs, const Params& params,
             const Contents& row_counts) {
  std::vector<Contents> buffers{row_counts};
  for (const Matrix& each : inputs) {
    buffers.push_back(contents(each.data));
  }
  buffers.push_back(poisoned(capacity_floats));
  return run_everywhere(call(kernel, buffers, params, {(capacity * n + 255) / 256}, {64})).back();
}

TEST(GpuAdd, GivesTheBitsOfTheReference) {
  const Matrix a = random_matrix(3, n, 1);
  const Matrix b = random_matrix(3, n, 2);
  const auto expected = graph::run_op(graph::Add{}, {}, {a, b}).value();
  expect_bits(run(KernelId::add_f32, {a, b}, AddParams{n, 0}, counts(3)), expected.data);
  expect_bits(run(KernelId::add_f32, {a, b}, AddParams{n, 1}, counts(9, 3)), expected.data);
}

TEST(GpuMul, GivesTheBitsOfTheReferenceForWholeRowsAndForOneNumberEach) {
  const Matrix a = random_matrix(3, n, 1);
  for (const std::int64_t n_b : shapes<std::int64_t>({n, 1})) {
    const Matrix b = random_matrix(3, n_b, 2);
    const auto expected = graph::run_op(graph::Mul{}, {}, {a, b}).value();
    expect_bits(run(KernelId::mul_f32, {a, b}, MulParams{n, 0, n_b == 1 ? 1u : 0u}, counts(3)),
                expected.data);
  }
}

TEST(GpuActivation, GivesTheBitsOfTheReferenceForEveryKind) {
  const Matrix x = wide_matrix(1);
  const Matrix up = random_matrix(3, n, 2);
  for (const auto kind : all_kinds) {
    const auto activated = graph::run_op(graph::Activation{kind}, {}, {x}).value();
    const auto gated = graph::run_op(graph::Mul{}, {}, {activated, up}).value();
    const ActivationParams params{n, 0, static_cast<u32>(kind)};
    expect_bits(run(KernelId::activation_f32, {x}, params, counts(3)), activated.data);
    expect_bits(run(KernelId::gated_f32, {x, up}, params, counts(3)), gated.data);
  }
}

TEST(GpuSoftcap, GivesTheBitsOfTheReference) {
  const Matrix x = wide_matrix(1);
  const auto expected = graph::run_op(graph::Softcap{30.0f}, {}, {x}).value();
  expect_bits(run(KernelId::softcap_f32, {x}, SoftcapParams{n, 1, 30.0f}, counts(9, 3)),
              expected.data);
}

}  // namespace
}  // namespace hearth::backend::gpu
