#include "backend/gpu/kernels/projection.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::ActivationKind;
using graph::Matrix;
using graph::random_matrix;
using graph::run_op;

constexpr u32 capacity = 5;  // rows that the buffers have room for, which is more than there are
constexpr std::int64_t n_rows = 3;
constexpr std::array<std::int64_t, PROJECTION_PARTS> n_outs{21, 9, 35};
constexpr float eps = 1e-5f;

class GpuProjection : public testing::Test {
 protected:
  graph::WeightId add_norm(std::int64_t n) { return weights_.add_uniform("norm", {n}, 0.5f, 1.5f); }
  graph::WeightId add_matrix(std::int64_t out, std::int64_t in) {
    return weights_.add("matrix", DType::f32, {out, in});
  }
  [[nodiscard]] Matrix op(const graph::AnyOp& op, const std::vector<Matrix>& inputs) const {
    return run_op(op, weights_.table(), inputs).value();
  }

  static ProjectionParams params_of(std::int64_t n) {
    const auto width = static_cast<u32>(n);
    ProjectionParams params{.input = {.n = width, .period = width, .width = width}};
    params.group_rows = 2;
    return params;
  }

  /// The three results for up to three matrices; what is empty is absent.
  struct Operands {
    std::vector<float> norm, row_gate, residual;
    std::vector<graph::WeightId> matrices;
  };
  std::vector<Contents> run(const ProjectionParams& params, const Matrix& x,
                            const Operands& operands) {
    const auto contents_of = [](const std::vector<float>& operand) {
      return operand.empty() ? no_buffer() : contents(operand);
    };
    std::vector<Contents> buffers{counts(n_rows), contents(x.data), contents_of(operands.norm)};
    buffers.push_back(contents_of(operands.row_gate));
    buffers.push_back(contents_of(operands.residual));
    u32 n_groups = 0;
    for (std::size_t i = 0; i < PROJECTION_PARTS; ++i) {
      buffers.push_back(i < operands.matrices.size() ? weights_.bytes(operands.matrices[i])
                                                     : no_buffer());
      n_groups += (params.n_out[i] + PROJECTION_OUTPUTS - 1) / PROJECTION_OUTPUTS;
    }
    for (const u32 n : params.n_out) {
      buffers.push_back(n == 0 ? no_buffer() : poisoned(std::size_t{capacity} * n));
    }
    const Dim3 grid{n_groups, 1, (capacity + params.group_rows - 1) / params.group_rows};
    auto results = run_everywhere(
        call(KernelId::projection_f32, std::move(buffers), params, grid, {PROJECTION_THREADS}));
    return {results.end() - PROJECTION_PARTS, results.end()};
  }

  graph::RandomWeights weights_{3};
};

TEST_F(GpuProjection, NormsItsInputAndMultipliesThreeMatrices) {
  for (const std::int64_t n : {256, 768}) {
    const auto norm = add_norm(n);
    const Matrix x = random_matrix(n_rows, n, 4);
    const Matrix normed = op(graph::RmsNorm{norm, eps}, {x});
    ProjectionParams params = params_of(n);
    params.input.norm_run = static_cast<u32>(n);
    params.input.eps = eps;
    Operands operands;
    operands.norm = values<float>(weights_.bytes(norm));
    std::vector<Matrix> expected;
    for (std::size_t i = 0; i < PROJECTION_PARTS; ++i) {
      params.n_out[i] = static_cast<u32>(n_outs[i]);
      operands.matrices.push_back(add_matrix(n_outs[i], n));
      expected.push_back(op(graph::MatMul{operands.matrices.back(), {}}, {normed}));
    }
    const auto results = run(params, x, operands);
    for (std::size_t i = 0; i < PROJECTION_PARTS; ++i) {
      expect_bits(results[i], expected[i].data);
    }
  }
}

TEST_F(GpuProjection, GatesByRowThenAddsTheResidual) {
  const auto matrix = add_matrix(n_outs[0], 512);
  const Matrix x = random_matrix(n_rows, 512, 4);
  const Matrix row_gate = random_matrix(n_rows, 1, 5);
  const Matrix residual = random_matrix(n_rows, n_outs[0], 6);
  const Matrix product = op(graph::MatMul{matrix, {}}, {x});
  const Matrix factor = op(graph::Activation{ActivationKind::sigmoid}, {row_gate});
  const Matrix expected = op(graph::Add{}, {residual, op(graph::Mul{}, {product, factor})});

  ProjectionParams params = params_of(512);
  params.n_out[0] = static_cast<u32>(n_outs[0]);
  params.has_row_gate = params.has_residual = 1;
  params.row_activation = static_cast<u32>(ActivationKind::sigmoid);
  Operands operands{.row_gate = row_gate.data, .residual = residual.data, .matrices = {matrix}};
  expect_bits(run(params, x, operands)[0], expected.data);
}

}  // namespace
}  // namespace hearth::backend::gpu
