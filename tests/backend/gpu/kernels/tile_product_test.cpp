#include "backend/gpu/kernels/tile_product.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/expert_groups.h"
#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::ActivationKind;
using graph::Matrix;
using graph::random_matrix;
using graph::run_op;

struct TileType {
  std::string_view name;
  KernelId product;
};

/// What a product reads beside its matrix and x; empty where absent.
struct Operands {
  std::vector<u32> entries, tiles;
  std::vector<float> bias, gate, residual;
};

template <class T>
Contents contents_of(const std::vector<T>& operand) {
  return operand.empty() ? no_buffer() : contents(operand);
}

class GpuTileProduct : public testing::TestWithParam<TileType> {
 protected:
  [[nodiscard]] static DType dtype() { return quant::find(GetParam().name)->dtype; }

  static Contents run(const ProductParams& params, const TensorView& weight, const Matrix& x,
                      const Operands& operands, u32 n_rows, u32 capacity) {
    const Codes codes(x.data, quant::integer_layout(dtype())->activation_block);
    std::vector<Contents> buffers{counts(n_rows), tiled(weight), contents(codes.codes),
                                  contents(codes.scales), contents(codes.sums)};
    buffers.push_back(contents_of(operands.entries));
    buffers.push_back(contents_of(operands.tiles));
    buffers.push_back(contents_of(operands.bias));
    buffers.push_back(contents_of(operands.gate));
    buffers.push_back(contents_of(operands.residual));
    buffers.push_back(poisoned(std::size_t{capacity} * std::max(params.n_used, 1u) * params.n_out));
    const auto n_groups = static_cast<u32>(
        params.n_used == 0 ? ceil_of(capacity, TILE_PRODUCT_COLUMNS) : operands.tiles.size() / 3);
    return run_everywhere(call(GetParam().product, std::move(buffers), params,
                               {ceil_of(params.n_out, TILE_PRODUCT_OUTPUTS), n_groups},
                               {TILE_PRODUCT_THREADS}))
        .back();
  }
  static const TensorView& tensor(const graph::RandomWeights& weights, graph::WeightId id) {
    return weights.table()[graph::index(id)].tensor;
  }
  static u32 ceil_of(u32 n, u32 divisor) { return (n + divisor - 1) / divisor; }

  static ProductParams params_of(std::int64_t n_in, std::int64_t n_out) {
    ProductParams params{};
    params.n_in = static_cast<u32>(n_in);
    params.n_out = static_cast<u32>(n_out);
    return params;
  }
};

TEST_P(GpuTileProduct, GivesTheBitsOfTheReference) {
  struct Size {
    std::int64_t n_in, n_out, rows;
    u32 capacity;
  };
  // Less than a tile, tails on every side, and a threadgroup without rows.
  for (const auto& [n_in, n_out, rows, capacity] :
       shapes<Size>({{256, 11, 3, 4}, {768, 128, 64, 64}, {512, 141, 70, 150}})) {
    graph::RandomWeights weights(3);
    const auto weight = weights.add("weight", dtype(), {n_out, n_in});
    Matrix x = random_matrix(rows, n_in, 4);
    x.data[static_cast<std::size_t>(n_in) + 5] = std::numeric_limits<float>::infinity();
    std::fill_n(x.data.begin() + 2 * n_in, n_in, 0.0f);
    const auto expected = run_op(graph::MatMul{weight, {}}, weights.table(), {x}).value();
    expect_bits(run(params_of(n_in, n_out), tensor(weights, weight), x, {}, static_cast<u32>(rows),
                    capacity),
                expected.data);
  }
}

TEST_P(GpuTileProduct, MultipliesTheLargestSumsExactly) {
  // Every byte of a block at its largest or smallest, with codes of one sign: no sum may overflow
  // or be rounded on its way.
  for (const int fill : {0xff, 0x80, 0x7f}) {
    graph::RandomWeights weights(3);
    const auto weight = weights.add("weight", dtype(), {16, 512});
    auto& bytes = weights.bytes(weight);
    const auto block_bytes = static_cast<std::size_t>(quant::info(dtype()).block_bytes);
    const bool is_k6 = GetParam().name == "Q6_K";
    const std::size_t factor_bytes = TILE_BLOCKS(block_bytes) == 1 && !is_k6 ? 4 : 2;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t in_block = i % block_bytes;
      if (is_k6 ? in_block < block_bytes - 2 : in_block >= factor_bytes) {
        bytes[i] = static_cast<std::byte>(fill);
      }
    }
    Matrix x = random_matrix(9, 512, 4);
    std::fill_n(x.data.begin(), 512, 1.0f);
    std::fill_n(x.data.begin() + 512, 512, -1.0f);
    const auto expected = run_op(graph::MatMul{weight, {}}, weights.table(), {x}).value();
    expect_bits(run(params_of(512, 16), tensor(weights, weight), x, {}, 9, 9), expected.data);
  }
}

// Outputs in fours, of which the last tile has some, and a number of which nothing is a multiple.
TEST_P(GpuTileProduct, AddsBiasThenGatesByRowThenAddsTheResidual) {
  constexpr std::int64_t n_rows = 19;
  for (const std::int64_t n_out : shapes<std::int64_t>({20, 37})) {
    graph::RandomWeights weights(3);
    const auto weight = weights.add("weight", dtype(), {n_out, 256});
    const auto bias = weights.add_uniform("bias", {n_out}, -1, 1);
    const Matrix x = random_matrix(n_rows, 256, 4);
    const Matrix gate = random_matrix(n_rows, 1, 7);
    const Matrix residual = random_matrix(n_rows, n_out, 8);
    const auto product = run_op(graph::MatMul{weight, bias}, weights.table(), {x}).value();
    const auto factor =
        run_op(graph::Activation{ActivationKind::sigmoid}, weights.table(), {gate}).value();
    const auto gated = run_op(graph::Mul{}, weights.table(), {product, factor}).value();
    const auto expected = run_op(graph::Add{}, weights.table(), {residual, gated}).value();

    auto params = params_of(256, n_out);
    params.has_bias = params.has_residual = 1;
    params.gate = PRODUCT_ROW_GATE;
    params.activation = static_cast<u32>(ActivationKind::sigmoid);
    const Operands operands{
        .bias = values<float>(weights.bytes(bias)), .gate = gate.data, .residual = residual.data};
    expect_bits(run(params, tensor(weights, weight), x, operands, n_rows, n_rows), expected.data);
  }
}

TEST_P(GpuTileProduct, MultipliesWithTheChosenExperts) {
  constexpr std::int64_t n_rows = 66;
  constexpr std::int64_t first_up = 32;  // row of an expert: a whole number of strips
  const Matrix routing = some_routing(n_rows);
  Operands operands;
  ExpertGroups groups = groups_of(routing, TILE_PRODUCT_COLUMNS);
  operands.entries = std::move(groups.entries);
  operands.tiles = std::move(groups.tiles);
  struct Size {
    std::int64_t n_out, n_inputs;
  };
  for (const auto& [n_out, n_inputs] : shapes<Size>({{21, 1}, {20, n_test_used}})) {
    graph::RandomWeights weights(3);
    const auto weight = weights.add("experts", dtype(), {n_test_experts, first_up + n_out, 256});
    const Matrix x = random_matrix(n_rows, 256 * n_inputs, 4);
    const auto product = [&, n_outputs = n_out](std::int64_t first_row) {
      return run_op(graph::ExpertMatMul{weight, first_row, n_outputs}, weights.table(),
                    {x, routing})
          .value();
    };
    const Matrix gate = product(0);
    const Matrix up = product(first_up);
    const auto factor =
        run_op(graph::Activation{ActivationKind::silu}, weights.table(), {gate}).value();
    const auto gated = run_op(graph::Mul{}, weights.table(), {factor, up}).value();

    auto params = params_of(256, n_out);
    params.n_used = n_test_used;
    params.expert_rows = 64;
    params.has_x_per_slot = n_inputs == 1 ? 0 : 1;
    params.first_row = static_cast<u32>(first_up);
    expect_bits(run(params, tensor(weights, weight), x, operands, n_rows, n_rows + 1), up.data);
    params.gate = PRODUCT_ELEMENT_GATE;
    params.activation = static_cast<u32>(ActivationKind::silu);
    operands.gate = gate.data;
    expect_bits(run(params, tensor(weights, weight), x, operands, n_rows, n_rows + 1), gated.data);
    operands.gate.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuTileProduct,
                         testing::Values(TileType{"Q4_K", KernelId::tile_product_q4_k},
                                         TileType{"Q5_K", KernelId::tile_product_q5_k},
                                         TileType{"Q6_K", KernelId::tile_product_q6_k},
                                         TileType{"Q8_0", KernelId::tile_product_q8_0},
                                         TileType{"Q4_0", KernelId::tile_product_q4_0},
                                         TileType{"IQ4_NL", KernelId::tile_product_iq4_nl},
                                         TileType{"MXFP4", KernelId::tile_product_mxfp4}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace hearth::backend::gpu
