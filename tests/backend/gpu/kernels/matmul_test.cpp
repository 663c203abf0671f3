#include <gtest/gtest.h>

#include "backend/gpu/kernels/matmul_f16.h"
#include "backend/gpu/kernels/matvec.h"
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

struct Type {
  KernelId kernel;
  const char* name;
};

class GpuMatvec : public testing::TestWithParam<Type> {
 protected:
  static Contents run(const graph::RandomWeights& weights, const Matrix& x, std::int64_t n_out) {
    const auto& weight = weights.table()[0].tensor;
    constexpr u32 group_rows = MATVEC_SIMDGROUPS * MATVEC_SIMDGROUP_ROWS;
    const MatvecParams params{static_cast<u32>(x.features), static_cast<u32>(n_out)};
    return run_everywhere(
        call(GetParam().kernel,
             {{weight.data.begin(), weight.data.end()},
              contents(x.data),
              poisoned(static_cast<std::size_t>(x.rows * n_out))},
             params, {(params.n_out + group_rows - 1) / group_rows, static_cast<u32>(x.rows)},
             {32 * MATVEC_SIMDGROUPS}))[2];
  }
};

TEST_P(GpuMatvec, AgreesWithDecodedWeightsInDoublePrecision) {
  for (const std::int64_t n_in : {256, 1280}) {
    for (const std::int64_t n_out : {1, 7}) {
      graph::RandomWeights weights(3);
      weights.add("weight", quant::find(GetParam().name)->dtype, {n_out, n_in});
      const Matrix x = random_matrix(2, n_in, 4);
      EXPECT_LT(relative_error(values<float>(run(weights, x, n_out)), product(weights, x)),
                f32_tolerance(n_in))
          << n_in << ", " << n_out;
    }
  }
}

// The reference rounds activations to int8: half a step of 1/127 of the largest, evenly spread.
TEST_P(GpuMatvec, AgreesWithTheReferenceAsFarAsThatRoundsActivations) {
  graph::RandomWeights weights(3);
  const auto weight = weights.add("weight", quant::find(GetParam().name)->dtype, {5, 512});
  const Matrix x = random_matrix(1, 512, 4);
  const auto expected = graph::run_op(graph::MatMul{weight, {}}, weights.table(), {x}).value();
  EXPECT_LT(relative_error(values<float>(run(weights, x, 5)), expected.data), 2e-2);
}

TEST_P(GpuMatvec, GivesARowTheSameBitsInAnyCompany) {
  graph::RandomWeights weights(5);
  weights.add("weight", quant::find(GetParam().name)->dtype, {6, 512});
  const Matrix three = random_matrix(3, 512, 6);
  const Matrix last{1, 512, {three.data.begin() + 1024, three.data.end()}};
  const auto together = values<float>(run(weights, three, 6));
  EXPECT_EQ(std::vector(together.begin() + 12, together.end()),
            values<float>(run(weights, last, 6)));
}

INSTANTIATE_TEST_SUITE_P(Types, GpuMatvec,
                         testing::Values(Type{KernelId::matvec_q4_k, "Q4_K"},
                                         Type{KernelId::matvec_q6_k, "Q6_K"},
                                         Type{KernelId::matvec_q8_0, "Q8_0"}),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

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
