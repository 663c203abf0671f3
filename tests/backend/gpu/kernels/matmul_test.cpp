#include <gtest/gtest.h>

#include "backend/gpu/kernels/matmul_f16.h"
#include "base/half.h"
#include "quant/registry.h"
#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;
using graph::random_matrix;

/// x weight^T in double, with the weights decoded.
std::vector<double> product(const graph::RandomWeights& weights, const Matrix& x) {
  const TensorView& weight = weights.table()[0].tensor;
  std::vector<float> decoded(static_cast<std::size_t>(weight.shape.elements()));
  quant::decode(weight.dtype, weight.data, decoded);
  std::vector<double> y;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t out = 0; out < weight.shape[0]; ++out) {
      double sum = 0;
      for (std::int64_t k = 0; k < x.features; ++k) {
        sum += static_cast<double>(x.at(row, k)) *
               static_cast<double>(decoded[static_cast<std::size_t>(out * x.features + k)]);
      }
      y.push_back(sum);
    }
  }
  return y;
}

TEST(GpuMatmul, MultipliesTilesWithTailsOnEverySide) {
  constexpr std::int64_t n_in = 96;
  for (const auto& [rows, n_out] : {std::pair<std::int64_t, std::int64_t>(1, 1), {33, 40}}) {
    graph::RandomWeights weights(3);
    weights.add("weight", DType::f16, {n_out, n_in});
    Matrix x = random_matrix(rows, n_in, 4);
    for (float& value : x.data) {
      value = to_float(to_half(value));  // what the kernel does with it
    }
    const auto& weight = weights.table()[0].tensor;
    const MatmulParams params{static_cast<u32>(rows), n_in, static_cast<u32>(n_out)};
    const auto results =
        run_everywhere(call(KernelId::matmul_f16,
                            {{weight.data.begin(), weight.data.end()},
                             contents(x.data),
                             poisoned(static_cast<std::size_t>(rows * n_out))},
                            params, {(params.n_out + 31) / 32, (params.rows + 31) / 32}, {128}));
    EXPECT_LT(relative_error(values<float>(results[2]), product(weights, x)), f32_tolerance(n_in));
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
