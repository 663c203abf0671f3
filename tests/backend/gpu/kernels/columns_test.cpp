#include "backend/gpu/kernels/columns.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backend/gpu/kernels/expert_rows.h"
#include "backend/gpu/kernels/strips.h"
#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::ActivationKind;
using graph::Matrix;
using graph::random_matrix;
using graph::run_op;

struct ColumnOperands {
  std::vector<graph::WeightId> matrices;
  std::vector<float> row_gate, residual;
  std::vector<u32> entries, tiles;  // of experts
};

class GpuColumns : public testing::TestWithParam<WeightType> {
 protected:
  graph::WeightId add_matrix(std::int64_t out, std::int64_t in) {
    return weights_.add("matrix", GetParam().dtype(), {out, in});
  }
  [[nodiscard]] Matrix op(const graph::AnyOp& op, const std::vector<Matrix>& inputs) const {
    return run_op(op, weights_.table(), inputs).value();
  }
  static u32 ceil_of(u32 n, u32 divisor) { return (n + divisor - 1) / divisor; }

  /// Chunks of as many columns as params say, two strips of a simdgroup, two groups of strips.
  std::vector<Contents> run(ColumnParams params, const Matrix& x, const ColumnOperands& operands,
                            u32 n_rows, u32 capacity) {
    const auto contents_of = [](const auto& operand) {
      return operand.empty() ? no_buffer() : contents(operand);
    };
    const Codes codes(x.data, 256);
    std::vector<Contents> buffers{counts(n_rows),
                                  contents(codes.codes),
                                  contents(codes.scales),
                                  contents(codes.sums),
                                  contents_of(operands.entries),
                                  contents_of(operands.tiles),
                                  contents_of(operands.row_gate),
                                  contents_of(operands.residual)};
    params.n_chunks =
        params.n_used == 0 ? ceil_of(capacity, COLUMN_GROUP * params.chunk_groups) : 1;
    params.simdgroup_strips = 2;
    params.group_strips = 4;
    u32 n_groups = 0;
    for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
      const bool is_there = i < operands.matrices.size();
      buffers.push_back(is_there
                            ? tiled(weights_.table()[graph::index(operands.matrices[i])].tensor)
                            : no_buffer());
      params.type[i] = strip_number(GetParam().name);
      if (is_there && (params.is_pair == 0 || i == 0)) {
        n_groups += ceil_of(params.n_out[i], params.group_strips * TILE_ROWS);
      }
      params.group_end[i] = n_groups;
    }
    const u32 y_rows = capacity * std::max(params.n_used, 1u);
    for (const u32 n : params.n_out) {
      buffers.push_back(n == 0 ? no_buffer() : poisoned(std::size_t{y_rows} * n));
    }
    const u32 n_tiles = params.n_used == 0 ? 1 : static_cast<u32>(operands.tiles.size() / 3);
    const auto results =
        run_everywhere(call(KernelId::column_projection, std::move(buffers), params,
                            {n_groups, n_tiles}, {32 * 2 * params.n_chunks}));
    return {results.end() - COLUMN_PARTS, results.end()};
  }

  graph::RandomWeights weights_{3};
};

TEST_P(GpuColumns, MultipliesFourMatrices) {
  struct Size {
    std::int64_t n_in, rows;
    u32 capacity, chunk_groups;
  };
  constexpr std::array<std::int64_t, COLUMN_PARTS> n_outs{21, 70, 16, 140};
  // Chunks without columns, with one group or two, of which the last has few columns.
  for (const auto& [n_in, rows, capacity, chunk_groups] :
       shapes<Size>({{256, 3, 20, 1}, {512, 27, 40, 2}, {768, 18, 18, 2}})) {
    Matrix x = random_matrix(rows, n_in, 4);
    x.data[static_cast<std::size_t>(n_in) + 5] = std::numeric_limits<float>::infinity();
    std::fill_n(x.data.begin() + 2 * n_in, n_in, 0.0f);
    ColumnParams params{.n = static_cast<u32>(n_in), .chunk_groups = chunk_groups};
    ColumnOperands operands;
    std::vector<Matrix> expected;
    for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
      params.n_out[i] = static_cast<u32>(n_outs[i]);
      operands.matrices.push_back(add_matrix(n_outs[i], n_in));
      expected.push_back(op(graph::MatMul{operands.matrices.back(), {}}, {x}));
    }
    const auto results = run(params, x, operands, static_cast<u32>(rows), capacity);
    for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
      expect_bits(results[i], expected[i].data);
    }
  }
}

TEST_P(GpuColumns, MultipliesTheLargestSumsExactly) {
  // Every byte of a block at its largest or smallest, with codes of one sign: no sum may overflow
  // or be rounded on its way.
  for (const int fill : {0xff, 0x80, 0x7f}) {
    const auto weight = add_matrix(16, 512);
    auto& bytes = weights_.bytes(weight);
    const auto block_bytes = static_cast<std::size_t>(quant::info(GetParam().dtype()).block_bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t in_block = i % block_bytes;
      if (GetParam().name == "Q6_K" ? in_block < block_bytes - 2 : in_block >= 4) {
        bytes[i] = static_cast<std::byte>(fill);
      }
    }
    Matrix x = random_matrix(9, 512, 4);
    std::fill_n(x.data.begin(), 512, 1.0f);
    std::fill_n(x.data.begin() + 512, 512, -1.0f);
    ColumnParams params{.n = 512, .n_out = {16}, .chunk_groups = 2};
    expect_bits(run(params, x, {.matrices = {weight}}, 9, 9).front(),
                op(graph::MatMul{weight, {}}, {x}).data);
  }
}

TEST_P(GpuColumns, GatesByRowThenAddsTheResidual) {
  constexpr u32 n_rows = 19;
  constexpr u32 n_out = 37;
  const auto weight = add_matrix(n_out, 256);
  const Matrix x = random_matrix(n_rows, 256, 4);
  const Matrix gate = random_matrix(n_rows, 1, 7);
  const Matrix residual = random_matrix(n_rows, n_out, 8);
  const auto product = op(graph::MatMul{weight, {}}, {x});
  const auto factor = op(graph::Activation{ActivationKind::sigmoid}, {gate});
  const auto expected = op(graph::Add{}, {residual, op(graph::Mul{}, {product, factor})});
  ColumnParams params{.n = 256,
                      .n_out = {n_out},
                      .chunk_groups = 1,
                      .has_row_gate = 1,
                      .row_activation = static_cast<u32>(ActivationKind::sigmoid),
                      .has_residual = 1};
  expect_bits(
      run(params, x, {.matrices = {weight}, .row_gate = gate.data, .residual = residual.data},
          n_rows, n_rows)
          .front(),
      expected.data);
}

TEST_P(GpuColumns, MultipliesAPair) {
  constexpr u32 n_rows = 19;
  constexpr u32 n_out = 37;
  ColumnOperands operands{.matrices = {add_matrix(n_out, 512), add_matrix(n_out, 512)}};
  const Matrix x = random_matrix(n_rows, 512, 4);
  const auto factor = op(graph::Activation{ActivationKind::silu},
                         {op(graph::MatMul{operands.matrices[0], {}}, {x})});
  const auto expected =
      op(graph::Mul{}, {factor, op(graph::MatMul{operands.matrices[1], {}}, {x})});
  const ColumnParams params{.n = 512,
                            .n_out = {n_out},
                            .chunk_groups = 2,
                            .is_pair = 1,
                            .activation = static_cast<u32>(ActivationKind::silu)};
  expect_bits(run(params, x, operands, n_rows, n_rows).front(), expected.data);
}

TEST_P(GpuColumns, MultipliesWithTheChosenExperts) {
  constexpr u32 n_rows = 30;
  constexpr u32 n_used = 2;
  constexpr u32 n_experts = 5;
  constexpr u32 n_out = 21;
  constexpr u32 first_up = 32;  // row of an expert: a whole number of strips
  const auto weight =
      weights_.add("experts", GetParam().dtype(), {n_experts, first_up + n_out, 256});
  // Expert 0 for every row, experts 1 and 2 for some, expert 3 for one, expert 4 for none.
  Matrix routing = random_matrix(n_rows, 2 * n_used, 9);
  for (std::size_t row = 0; row < n_rows; ++row) {
    routing.data[2 * n_used * row + row % 2] = 0.0f;
    routing.data[2 * n_used * row + 1 - row % 2] =
        row == 4 ? 3.0f : static_cast<float>(1 + row % 3 % 2);
  }
  const ExpertRowsParams rows{
      .n_used = n_used,
      .n_experts = n_experts,
      .tile_entries = COLUMN_MAX_COLUMNS,
      .n_tiles = EXPERT_TILES(n_rows * n_used, n_experts, COLUMN_MAX_COLUMNS)};
  const auto grouped = run_everywhere(call(KernelId::expert_rows,
                                           {counts(n_rows), contents(routing.data),
                                            poisoned(n_rows * n_used), poisoned(3 * rows.n_tiles)},
                                           rows, {n_experts}, {EXPERT_ROWS_THREADS}));
  ColumnOperands operands{.matrices = {weight, weight},
                          .entries = values<u32>(grouped[2]),
                          .tiles = values<u32>(grouped[3])};
  for (const std::int64_t n_inputs : shapes<std::int64_t>({1, n_used})) {
    const Matrix x = random_matrix(n_rows, 256 * n_inputs, 4);
    const auto product = [&](std::int64_t first_row) {
      return op(graph::ExpertMatMul{weight, first_row, n_out}, {x, routing});
    };
    const auto factor = op(graph::Activation{ActivationKind::silu}, {product(0)});
    const auto gated = op(graph::Mul{}, {factor, product(first_up)});
    ColumnParams params{.n = 256,
                        .n_out = {n_out},
                        .chunk_groups = COLUMN_MAX_GROUPS,
                        .is_pair = 1,
                        .activation = static_cast<u32>(ActivationKind::silu),
                        .n_used = n_used,
                        .expert_rows = 64,
                        .first_row = {0, first_up},
                        .has_x_per_slot = n_inputs == 1 ? 0u : 1u};
    expect_bits(run(params, x, operands, n_rows, n_rows + 1).front(), gated.data);
    params.is_pair = 0;
    params.first_row[0] = first_up;
    operands.matrices.resize(1);
    expect_bits(run(params, x, operands, n_rows, n_rows + 1).front(), product(first_up).data);
    operands.matrices.push_back(weight);
  }
}

/// Tiled types with blocks of 256 weights.
std::vector<WeightType> types_of_super_blocks() {
  auto types = tiled_types();
  std::erase_if(types,
                [](const WeightType& type) { return STRIP_IS_SMALL(strip_number(type.name)); });
  return types;
}

INSTANTIATE_TEST_SUITE_P(Types, GpuColumns, testing::ValuesIn(types_of_super_blocks()),
                         name_of_type);

}  // namespace
}  // namespace hearth::backend::gpu
