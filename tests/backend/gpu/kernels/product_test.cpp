#include "backend/gpu/kernels/product.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "backend/gpu/kernels/product_rows.h"
#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::ActivationKind;
using graph::Matrix;
using graph::random_matrix;
using graph::run_op;

/// What a product reads beside its matrix and x; empty where absent.
struct Operands {
  std::vector<float> routing, bias, gate, residual;
};

class GpuProduct : public testing::TestWithParam<WeightType> {
 protected:
  /// Rows that the buffers have room for, which is more than there are.
  static constexpr std::int64_t capacity = 7;

  static Contents run(const ProductParams& params, const std::vector<std::byte>& weight,
                      const Matrix& x, const Operands& operands, u32 n_rows) {
    const auto* layout = quant::integer_layout(GetParam().dtype());
    std::vector<Contents> buffers{counts(n_rows), weight};
    if (layout != nullptr) {
      const Codes codes(x.data, layout->activation_block);
      buffers.insert(buffers.end(),
                     {contents(codes.codes), contents(codes.scales), contents(codes.sums)});
    } else {
      buffers.push_back(contents(x.data));
    }
    for (const auto* operand :
         {&operands.routing, &operands.bias, &operands.gate, &operands.residual}) {
      buffers.push_back(operand->empty() ? no_buffer() : contents(*operand));
    }
    const u32 n_slots = std::max(params.n_used, 1u);
    buffers.push_back(poisoned(capacity * n_slots * params.n_out));
    const u32 n_groups = (params.n_out + PRODUCT_GROUP_OUTPUTS - 1) / PRODUCT_GROUP_OUTPUTS;
    const Dim3 grid =
        params.n_used == 0
            ? Dim3{(capacity + PRODUCT_GROUP_ROWS - 1) / PRODUCT_GROUP_ROWS, n_groups, 1}
            : Dim3{params.n_used, n_groups, capacity};
    return run_everywhere(
               call(GetParam().product, std::move(buffers), params, grid, {PRODUCT_THREADS}))
        .back();
  }
};

constexpr std::int64_t n_out = 11;

ProductParams params_of(const Matrix& x) {
  return {.axis = 0,
          .n_in = static_cast<u32>(x.features),
          .n_out = static_cast<u32>(n_out),
          .has_bias = 0,
          .gate = PRODUCT_NO_GATE,
          .activation = 0,
          .has_residual = 0,
          .n_used = 0,
          .expert_rows = 0,
          .first_row = 0,
          .has_x_per_slot = 0,
          .is_tiled = 0};
}

TEST_P(GpuProduct, GivesTheBitsOfTheReference) {
  // One pass and a part of one; rows of an odd number of blocks begin at any place.
  const std::int64_t block =
      std::max<std::int64_t>(32, quant::info(GetParam().dtype()).block_weights);
  for (const std::int64_t n_in : shapes<std::int64_t>({256, 1024 + block})) {
    graph::RandomWeights weights(3);
    const auto weight = weights.add("weight", GetParam().dtype(), {n_out, n_in});
    Matrix x = random_matrix(6, n_in, 4);
    x.data[static_cast<std::size_t>(n_in) + 5] = std::numeric_limits<float>::infinity();
    std::fill_n(x.data.begin() + 2 * n_in, n_in, 0.0f);
    const auto expected = run_op(graph::MatMul{weight, {}}, weights.table(), {x}).value();
    expect_bits(run(params_of(x), weights.bytes(weight), x, {}, 6), expected.data);
  }
}

TEST_P(GpuProduct, GivesARowTheSameBitsInAnyCompany) {
  graph::RandomWeights weights(5);
  const auto weight = weights.add("weight", GetParam().dtype(), {n_out, 512});
  const Matrix three = random_matrix(3, 512, 6);
  const Matrix last{1, 512, {three.data.begin() + 1024, three.data.end()}};
  const auto together = values<float>(run(params_of(three), weights.bytes(weight), three, {}, 3));
  expect_bits(run(params_of(last), weights.bytes(weight), last, {}, 1),
              {together.begin() + 2 * n_out, together.begin() + 3 * n_out});
}

TEST_P(GpuProduct, AddsBiasThenGatesByRowThenAddsTheResidual) {
  graph::RandomWeights weights(3);
  const auto weight = weights.add("weight", GetParam().dtype(), {n_out, 256});
  const auto bias = weights.add_uniform("bias", {n_out}, -1, 1);
  const Matrix x = random_matrix(5, 256, 4);
  const Matrix gate = random_matrix(5, 1, 7);
  const Matrix residual = random_matrix(5, n_out, 8);
  const auto product = run_op(graph::MatMul{weight, bias}, weights.table(), {x}).value();
  const auto factor =
      run_op(graph::Activation{ActivationKind::sigmoid}, weights.table(), {gate}).value();
  const auto gated = run_op(graph::Mul{}, weights.table(), {product, factor}).value();
  const auto expected = run_op(graph::Add{}, weights.table(), {residual, gated}).value();

  auto params = params_of(x);
  params.has_bias = params.has_residual = 1;
  params.gate = PRODUCT_ROW_GATE;
  params.activation = static_cast<u32>(ActivationKind::sigmoid);
  const Operands operands{.routing = {},
                          .bias = values<float>(weights.bytes(bias)),
                          .gate = gate.data,
                          .residual = residual.data};
  expect_bits(run(params, weights.bytes(weight), x, operands, 5), expected.data);
}

TEST_P(GpuProduct, MultipliesWithTheActivationOfEachElement) {
  graph::RandomWeights weights(3);
  const auto weight = weights.add("weight", GetParam().dtype(), {n_out, 256});
  const Matrix x = random_matrix(2, 256, 4);
  const Matrix gate = random_matrix(2, n_out, 7);
  const auto product = run_op(graph::MatMul{weight, {}}, weights.table(), {x}).value();
  for (const auto kind : {ActivationKind::silu, ActivationKind::gelu_tanh}) {
    const auto factor = run_op(graph::Activation{kind}, weights.table(), {gate}).value();
    const auto expected = run_op(graph::Mul{}, weights.table(), {factor, product}).value();
    auto params = params_of(x);
    params.gate = PRODUCT_ELEMENT_GATE;
    params.activation = static_cast<u32>(kind);
    const Operands operands{.routing = {}, .bias = {}, .gate = gate.data, .residual = {}};
    expect_bits(run(params, weights.bytes(weight), x, operands, 2), expected.data);
  }
}

constexpr std::int64_t n_used = 2;

/// Each row has two of five experts, in another order each.
Matrix some_routing(std::int64_t rows) {
  Matrix routing = random_matrix(rows, 2 * n_used, 9);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t slot = 0; slot < n_used; ++slot) {
      routing.data[static_cast<std::size_t>(row * 2 * n_used + slot)] =
          static_cast<float>((3 * row + 4 * slot) % 5);
    }
  }
  return routing;
}

TEST_P(GpuProduct, MultipliesWithTheChosenExperts) {
  graph::RandomWeights weights(3);
  const auto weight = weights.add("experts", GetParam().dtype(), {5, 2 * n_out, 256});
  const Matrix routing = some_routing(3);
  const graph::ExpertMatMul gate_product{weight, 0, n_out};
  const graph::ExpertMatMul up_product{weight, n_out, n_out};
  for (const std::int64_t n_inputs : shapes<std::int64_t>({1, n_used})) {
    const Matrix x = random_matrix(3, 256 * n_inputs, 4);
    const auto gate = run_op(gate_product, weights.table(), {x, routing}).value();
    const auto up = run_op(up_product, weights.table(), {x, routing}).value();
    const auto factor =
        run_op(graph::Activation{ActivationKind::silu}, weights.table(), {gate}).value();
    const auto gated = run_op(graph::Mul{}, weights.table(), {factor, up}).value();

    auto params = params_of(x);
    params.n_in = 256;
    params.n_used = static_cast<u32>(n_used);
    params.expert_rows = 2 * static_cast<u32>(n_out);
    params.has_x_per_slot = n_inputs == 1 ? 0 : 1;
    Operands operands{.routing = routing.data, .bias = {}, .gate = {}, .residual = {}};
    expect_bits(run(params, weights.bytes(weight), x, operands, 3), gate.data);
    params.first_row = static_cast<u32>(n_out);
    params.gate = PRODUCT_ELEMENT_GATE;
    operands.gate = gate.data;
    expect_bits(run(params, weights.bytes(weight), x, operands, 3), gated.data);
  }
}

/// Matrices in tiles, where no kernel of tiles takes the product.
class GpuTiledProduct : public GpuProduct {};

TEST_P(GpuTiledProduct, GivesTheBitsOfTheReference) {
  for (const std::int64_t n_in : shapes<std::int64_t>({256, 1280})) {
    graph::RandomWeights weights(3);
    const auto weight = weights.add("weight", GetParam().dtype(), {n_out, n_in});
    const Matrix x = random_matrix(6, n_in, 4);
    const auto expected = run_op(graph::MatMul{weight, {}}, weights.table(), {x}).value();
    ProductParams params = params_of(x);
    params.is_tiled = 1;
    expect_bits(run(params, tiled(weights.table()[graph::index(weight)].tensor), x, {}, 6),
                expected.data);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuTiledProduct, testing::ValuesIn(tiled_types()), name_of_type);

INSTANTIATE_TEST_SUITE_P(Types, GpuProduct, testing::ValuesIn(tested_types()), name_of_type);

struct RowsKernel {
  DType type;
  KernelId kernel;
};

/// Of a matrix of so many rows.
void expect_rows_of_the_reference(DType type, KernelId kernel, std::int64_t n_in,
                                  std::int64_t outputs) {
  SCOPED_TRACE(testing::Message() << quant::name(type) << ", " << n_in << ", " << outputs);
  constexpr std::int64_t rows = 69;
  graph::RandomWeights weights(3);
  const auto weight = weights.add("weight", type, {outputs, n_in});
  const auto bias = weights.add_uniform("bias", {outputs}, -1, 1);
  Matrix x = random_matrix(rows, n_in, 4);
  x.data[static_cast<std::size_t>(n_in) + 5] = std::numeric_limits<float>::infinity();
  const Matrix residual = random_matrix(rows, outputs, 8);
  const auto product = run_op(graph::MatMul{weight, bias}, weights.table(), {x}).value();
  const auto expected = run_op(graph::Add{}, weights.table(), {residual, product}).value();
  auto params = params_of(x);
  params.n_out = static_cast<u32>(outputs);
  params.has_bias = params.has_residual = 1;
  const Dim3 grid = outputs <= PRODUCT_ROWS_OUTPUTS ? Dim3{6, 1} : Dim3{3, 2};
  const auto results = run_everywhere(
      call(kernel,
           {counts(rows), weights.bytes(weight), contents(x.data), weights.bytes(bias), no_buffer(),
            contents(residual.data), poisoned(static_cast<std::size_t>((rows + 1) * outputs))},
           params, grid, {PRODUCT_ROWS_THREADS}));
  expect_bits(results.back(), expected.data);
}

// Threadgroups with rows and outputs to spare, and a last pass that is not full.
TEST(GpuProductRows, GiveTheBitsOfTheReference) {
  for (const auto& [type, kernel] :
       shapes<RowsKernel>({{DType::f16, KernelId::product_rows_f16},
                           {DType::bf16, KernelId::product_rows_bf16},
                           {DType::f32, KernelId::product_rows_f32}})) {
    for (const std::int64_t n_in : shapes<std::int64_t>({8, 128, 200})) {
      expect_rows_of_the_reference(type, kernel, n_in, 41);
      expect_rows_of_the_reference(type, kernel, n_in, 29);
    }
  }
}

TEST(GpuProducts, ExistForEveryTypeOfFilesWithAnIntegerForm) {
  for (const auto& type : quant::in_files()) {
    const bool is_here = std::ranges::any_of(
        weight_types, [&](const WeightType& weight) { return weight.name == type.name; });
    if (quant::integer_layout(type.dtype) != nullptr) {
      EXPECT_TRUE(is_here) << type.name;
    }
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
