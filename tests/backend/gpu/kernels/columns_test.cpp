#include "backend/gpu/kernels/columns.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backend/gpu/kernels/strips.h"
#include "tests/backend/gpu/kernels/expert_groups.h"
#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::ActivationKind;
using graph::Matrix;
using graph::random_matrix;
using graph::run_op;

constexpr float eps = 1e-5f;

struct ColumnOperands {
  std::vector<graph::WeightId> matrices;
  std::vector<float> norm;  // of whole rows of the input
  std::vector<float> row_gate, residual;
  std::vector<float> slots, routing;
  std::vector<u32> entries, tiles;  // of experts
};

class GpuColumns : public testing::TestWithParam<WeightType> {
 protected:
  graph::WeightId add_matrix(std::int64_t out, std::int64_t in, bool is_float = false) {
    return weights_.add("matrix", is_float ? DType::f32 : GetParam().dtype(), {out, in});
  }
  [[nodiscard]] const TensorView& tensor(graph::WeightId id) const {
    return weights_.table()[graph::index(id)].tensor;
  }

  /// Codes, digits, scales and floats of rows of n values, for at least two rows that are not
  /// there.
  static std::vector<Contents> prepare(const std::vector<float>& x, std::int64_t n,
                                       const std::vector<float>& norm) {
    const auto n_rows = static_cast<u32>(x.size() / static_cast<std::size_t>(n));
    const std::size_t room = n_rows + 2;
    const auto n_values = static_cast<u32>(n);
    ColumnInputParams params{.input = {.n = n_values,
                                       .block = 256,
                                       .norm_run = norm.empty() ? 0 : n_values,
                                       .eps = eps,
                                       .period = n_values,
                                       .width = n_values},
                             .has_floats = 1};
    const auto results = run_everywhere(
        call(KernelId::column_input,
             {counts(n_rows), contents(x), norm.empty() ? no_buffer() : contents(norm), no_buffer(),
              poisoned(room * n_values / 4), poisoned(room * n_values / 32),
              poisoned(room * n_values / 256), poisoned(room * n_values)},
             params, {(n_values + INPUT_GROUP_VALUES - 1) / INPUT_GROUP_VALUES, n_rows + 2},
             {INPUT_THREADS}));
    return {results.begin() + 4, results.end()};
  }
  [[nodiscard]] Matrix op(const graph::AnyOp& op, const std::vector<Matrix>& inputs) const {
    return run_op(op, weights_.table(), inputs).value();
  }
  static u32 ceil_of(u32 n, u32 divisor) { return (n + divisor - 1) / divisor; }

  /// Chunks of as many columns as params say, two strips of a simdgroup, at least four simdgroups.
  /// Without experts, column_split_k gives the same.
  std::vector<Contents> run(ColumnParams params, const Matrix& x, const ColumnOperands& operands,
                            u32 n_rows, u32 capacity) {
    const auto contents_of = [](const auto& operand) {
      return operand.empty() ? no_buffer() : contents(operand);
    };
    std::vector<Contents> buffers{counts(n_rows)};
    const auto input = prepare(x.data, params.n, operands.norm);
    buffers.insert(buffers.end(), input.begin(), input.end());
    buffers.push_back(contents_of(operands.entries));
    buffers.push_back(contents_of(operands.tiles));
    buffers.push_back(contents_of(operands.row_gate));
    buffers.push_back(contents_of(operands.residual));
    buffers.push_back(contents_of(operands.slots));
    buffers.push_back(contents_of(operands.routing));
    params.n_chunks =
        params.n_used == 0 ? ceil_of(capacity, COLUMN_GROUP * params.chunk_groups) : 1;
    params.simdgroup_strips = 2;
    const u32 side_by_side = std::max(ceil_of(4, params.n_chunks), 2u);  // simdgroups of a chunk
    params.group_strips = 2 * side_by_side;
    const u32 n_simdgroups = side_by_side * params.n_chunks;
    params.float_chunks = ceil_of(capacity, COLUMN_FLOAT_COLUMNS * n_simdgroups);
    u32 n_groups = 0;
    for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
      const bool is_there = i < operands.matrices.size();
      buffers.push_back(is_there ? tiled(tensor(operands.matrices[i])) : no_buffer());
      const bool is_float = is_there && tensor(operands.matrices[i]).dtype == DType::f32;
      params.type[i] = is_float ? STRIP_F32 : strip_number(GetParam().name);
      if (is_float) {
        n_groups += ceil_of(params.n_out[i], COLUMN_FLOAT_ROWS) * params.float_chunks;
      } else if (is_there && (params.is_pair == 0 || i == 0)) {
        n_groups += ceil_of(params.n_out[i], params.group_strips * TILE_ROWS);
      }
      params.group_end[i] = n_groups;
    }
    const u32 y_rows = capacity * std::max(params.n_used, 1u);
    for (const u32 n : params.n_out) {
      buffers.push_back(n == 0 ? no_buffer() : poisoned(std::size_t{y_rows} * n));
    }
    const u32 n_tiles = params.n_used == 0 ? 1 : static_cast<u32>(operands.tiles.size() / 3);
    const auto results = run_everywhere(call(KernelId::column_projection, buffers, params,
                                             {n_groups, n_tiles}, {32 * n_simdgroups}));
    std::vector<Contents> y(results.end() - COLUMN_PARTS, results.end());
    if (params.n_used == 0) {
      expect_split_k(params, std::move(buffers), operands, capacity, y);
    }
    return y;
  }

  void expect_split_k(ColumnParams params, std::vector<Contents> buffers,
                      const ColumnOperands& operands, u32 capacity,
                      const std::vector<Contents>& expected) {
    constexpr std::ptrdiff_t entries = 5;  // and tiles
    buffers.erase(buffers.begin() + entries, buffers.begin() + entries + 2);
    params.group_strips = 1;
    for (const u32 n_simdgroups : shapes<u32>({8, 4})) {
      const u32 n_rounds = n_simdgroups == 8 ? 1 : 2;  // or more, with longer rows
      params.round_units = COLUMN_WORK / SPLIT_UNIT_WORDS(params.chunk_groups) / n_simdgroups /
                           n_rounds * n_simdgroups;
      params.float_chunks = ceil_of(capacity, COLUMN_FLOAT_COLUMNS * n_simdgroups);
      u32 n_groups = 0;
      for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
        const bool is_there = i < operands.matrices.size();
        if (is_there && params.type[i] == STRIP_F32) {
          n_groups += ceil_of(params.n_out[i], COLUMN_FLOAT_ROWS) * params.float_chunks;
        } else if (is_there && (params.is_pair == 0 || i == 0)) {
          n_groups += ceil_of(params.n_out[i], TILE_ROWS);
        }
        params.group_end[i] = n_groups;
      }
      const auto results = run_everywhere(call(KernelId::column_split_k, buffers, params,
                                               {n_groups, params.n_chunks}, {32 * n_simdgroups}));
      for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
        EXPECT_EQ(results[results.size() - COLUMN_PARTS + i], expected[i]) << i;
      }
    }
  }

  graph::RandomWeights weights_{3};
};

TEST_P(GpuColumns, MultipliesFourMatricesOfWhichTwoAreFloats) {
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
      operands.matrices.push_back(add_matrix(n_outs[i], n_in, i % 2 == 0));
      expected.push_back(op(graph::MatMul{operands.matrices.back(), {}}, {x}));
    }
    const auto results = run(params, x, operands, static_cast<u32>(rows), capacity);
    for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
      expect_bits(results[i], expected[i].data);
    }
  }
}

TEST_P(GpuColumns, NormsItsInput) {
  constexpr u32 n_rows = 5;
  constexpr u32 n_out = 20;
  constexpr std::int64_t n_in = 2304;  // more than a threadgroup of the input prepares
  const auto norm = weights_.add_uniform("norm", {n_in}, 0.5f, 1.5f);
  ColumnParams params{.n = n_in, .n_out = {n_out, n_out}, .chunk_groups = 1};
  const ColumnOperands operands{
      .matrices = {add_matrix(n_out, n_in), add_matrix(n_out, n_in, /*is_float=*/true)},
      .norm = values<float>(weights_.bytes(norm))};
  const Matrix x = random_matrix(n_rows, n_in, 4);
  const Matrix normed = op(graph::RmsNorm{norm, eps}, {x});
  const auto results = run(params, x, operands, n_rows, n_rows);
  for (std::size_t i = 0; i < 2; ++i) {
    expect_bits(results[i], op(graph::MatMul{operands.matrices[i], {}}, {normed}).data);
  }
}

TEST(GpuColumnInput, NormsRunsAndMultipliesByColumnsOfAGate) {
  constexpr std::int64_t n = 512;
  constexpr std::int64_t run = 128;
  constexpr u32 n_rows = 3;
  graph::RandomWeights weights(3);
  const auto norm = weights.add_uniform("norm", {run}, 0.5f, 1.5f);
  const Matrix x = random_matrix(n_rows, n, 4);
  const Matrix gate = random_matrix(n_rows, 2 * n, 5);
  const auto op = [&](const graph::AnyOp& each, const std::vector<Matrix>& inputs) {
    return run_op(each, weights.table(), inputs).value();
  };
  const graph::ColumnPattern pattern{.period = 2 * run, .start = run, .width = run};
  const Matrix expected =
      op(graph::Mul{},
         {op(graph::RmsNorm{norm, eps}, {x}),
          op(graph::Activation{ActivationKind::silu}, {op(graph::Columns{pattern}, {gate})})});
  const ColumnInputParams params{.input = {.n = n,
                                           .block = 256,
                                           .norm_run = run,
                                           .eps = eps,
                                           .has_gate = 1,
                                           .activation = static_cast<u32>(ActivationKind::silu),
                                           .gate_stride = 2 * n,
                                           .period = 2 * run,
                                           .start = run,
                                           .width = run},
                                 .has_floats = 1};
  const auto results =
      run_everywhere(call(KernelId::column_input,
                          {counts(n_rows), contents(x.data), weights.bytes(norm),
                           contents(gate.data), poisoned(n_rows * n / 4), poisoned(n_rows * n / 32),
                           poisoned(n_rows * n / 256), poisoned(n_rows * n)},
                          params, {1, n_rows}, {INPUT_THREADS}));
  expect_bits(results[7], expected.data);
  const Codes codes(expected.data, 256);
  expect_bits(results[6], codes.scales);
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

TEST_P(GpuColumns, AddsWhatExpertsSaidBeforeItself) {
  constexpr u32 n_rows = 11;
  constexpr u32 n_out = 37;
  constexpr u32 n_slots = 3;
  const auto weight = add_matrix(n_out, 256);
  const Matrix x = random_matrix(n_rows, 256, 4);
  const Matrix gate = random_matrix(n_rows, 1, 7);
  const Matrix residual = random_matrix(n_rows, n_out, 8);
  const Matrix slots = random_matrix(n_rows, n_slots * n_out, 9);
  const Matrix routing = random_matrix(n_rows, 2 * n_slots, 10);
  const auto product = op(graph::MatMul{weight, {}}, {x});
  const auto factor = op(graph::Activation{ActivationKind::sigmoid}, {gate});
  const auto sum = op(graph::Add{}, {residual, op(graph::ExpertSum{}, {slots, routing})});
  const auto expected = op(graph::Add{}, {sum, op(graph::Mul{}, {product, factor})});
  const ColumnParams params{.n = 256,
                            .n_out = {n_out},
                            .chunk_groups = 2,
                            .has_row_gate = 1,
                            .row_activation = static_cast<u32>(ActivationKind::sigmoid),
                            .has_residual = 1,
                            .n_slots = n_slots};
  expect_bits(run(params, x,
                  {.matrices = {weight},
                   .row_gate = gate.data,
                   .residual = residual.data,
                   .slots = slots.data,
                   .routing = routing.data},
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

TEST_P(GpuColumns, MultipliesLongRowsAndPairsOfThem) {
  constexpr u32 n_rows = 10;
  constexpr u32 n_out = 20;
  constexpr std::int64_t n_in = 2816;  // of which column_split_k takes several rounds
  ColumnOperands operands{.matrices = {add_matrix(n_out, n_in), add_matrix(n_out, n_in)}};
  const Matrix x = random_matrix(n_rows, n_in, 4);
  const auto first = op(graph::MatMul{operands.matrices[0], {}}, {x});
  const auto factor = op(graph::Activation{ActivationKind::silu}, {first});
  const auto gated = op(graph::Mul{}, {factor, op(graph::MatMul{operands.matrices[1], {}}, {x})});
  for (const u32 chunk_groups : shapes<u32>({1, 2})) {
    ColumnParams params{.n = n_in,
                        .n_out = {n_out},
                        .chunk_groups = chunk_groups,
                        .is_pair = 1,
                        .activation = static_cast<u32>(ActivationKind::silu)};
    expect_bits(run(params, x, operands, n_rows, n_rows).front(), gated.data);
    params.is_pair = 0;
    expect_bits(run(params, x, {.matrices = {operands.matrices[0]}}, n_rows, n_rows).front(),
                first.data);
  }
}

TEST_P(GpuColumns, MultipliesWithTheChosenExperts) {
  constexpr u32 n_rows = 30;
  constexpr u32 n_out = 21;
  constexpr u32 first_up = 32;  // row of an expert: a whole number of strips
  const auto weight =
      weights_.add("experts", GetParam().dtype(), {n_test_experts, first_up + n_out, 256});
  const Matrix routing = some_routing(n_rows);
  ExpertGroups groups = groups_of(routing, COLUMN_MAX_COLUMNS);
  ColumnOperands operands{.matrices = {weight, weight},
                          .entries = std::move(groups.entries),
                          .tiles = std::move(groups.tiles)};
  for (const std::int64_t n_inputs : shapes<std::int64_t>({1, n_test_used})) {
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
                        .n_used = n_test_used,
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
