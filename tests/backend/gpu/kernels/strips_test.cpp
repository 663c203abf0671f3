#include "backend/gpu/kernels/strips.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/recurrent_step.h"
#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::ActivationKind;
using graph::Matrix;
using graph::random_matrix;
using graph::run_op;

constexpr u32 spare_rows = 2;  // that the buffers have room for
constexpr std::int64_t n_rows = 3;
constexpr std::int64_t many_rows = 7;  // more than a simdgroup multiplies with floats
constexpr std::array<std::int64_t, STRIP_PARTS> n_outs{21, 9, 35, 70};
constexpr float eps = 1e-5f;
// Of a convolution: the row's position, and where its ring is.
const std::vector<i32> slot_before{1};
const std::vector<i32> slot_after{0};

/// Types of the four matrices.
struct StripTypes {
  std::string_view name;
  std::array<std::string_view, STRIP_PARTS> types;
};

class GpuStrips : public testing::TestWithParam<StripTypes> {
 protected:
  [[nodiscard]] static DType dtype(std::size_t part) {
    return quant::find(GetParam().types[part])->dtype;
  }
  graph::WeightId add_norm(std::int64_t n) { return weights_.add_uniform("norm", {n}, 0.5f, 1.5f); }
  graph::WeightId add_matrix(std::int64_t out, std::int64_t in, std::size_t part = 0) {
    return weights_.add("matrix", dtype(part), {out, in});
  }
  [[nodiscard]] Matrix op(const graph::AnyOp& op, const std::vector<Matrix>& inputs) const {
    return run_op(op, weights_.table(), inputs).value();
  }

  [[nodiscard]] const TensorView& tensor(graph::WeightId id) const {
    return weights_.table()[graph::index(id)].tensor;
  }

  static bool has_small() {
    return std::ranges::any_of(
        GetParam().types, [](std::string_view type) { return STRIP_IS_SMALL(strip_number(type)); });
  }

  /// Of the step, for a threadgroup.
  static u32 most_rows() {
    const bool are_floats_or_small =
        has_small() || std::ranges::all_of(GetParam().types, [](std::string_view type) {
          return strip_number(type) == STRIP_F32;
        });
    return are_floats_or_small ? static_cast<u32>(many_rows) : STRIP_FEW_ROWS;
  }

  static StripParams params_of(std::int64_t n) {
    StripParams params{.n = static_cast<u32>(n)};
    params.group_rows = 2;
    params.round_strips = 1;
    return params;
  }

  /// The four results for up to four matrices; what is empty is absent.
  struct Operands {
    std::vector<float> norm, row_gate, residual;
    std::vector<graph::WeightId> matrices;
    std::vector<float> conv_weight, rings;
  };
  std::vector<Contents> run(const StripParams& params, const Matrix& x, const Operands& operands) {
    const auto contents_of = [](const std::vector<float>& operand) {
      return operand.empty() ? no_buffer() : contents(operand);
    };
    const auto rows = static_cast<u32>(x.data.size() / params.n);
    const bool is_row = rows == 1;
    std::vector<Contents> buffers{counts(rows), contents(x.data), contents_of(operands.norm)};
    buffers.push_back(contents_of(operands.row_gate));
    buffers.push_back(contents_of(operands.residual));
    StripParams launch = params;
    launch.group_rows = is_row ? 1 : params.group_rows;
    u32 n_groups = 0;
    for (std::size_t i = 0; i < STRIP_PARTS; ++i) {
      const bool is_there = i < operands.matrices.size();
      buffers.push_back(is_there ? tiled(tensor(operands.matrices[i])) : no_buffer());
      launch.type[i] = is_there ? strip_number(GetParam().types[i]) : 0;
      const bool is_float = launch.type[i] == STRIP_F32;
      launch.group_strips[i] = is_float ? 1 : group_strips;
      launch.chain_shift[i] = chain_shift;
      const u32 group_rows = is_float ? STRIP_FLOAT_ROWS : group_strips * STRIP_ROWS;
      n_groups +=
          params.is_pair != 0 && i == 1 ? 0 : (params.n_out[i] + group_rows - 1) / group_rows;
      launch.group_end[i] = n_groups;
    }
    const std::size_t y_rows = is_row ? 1 : rows + spare_rows;
    for (const u32 n : params.n_out) {
      buffers.push_back(n == 0 ? no_buffer() : poisoned(y_rows * n));
    }
    if (is_row) {
      buffers.insert(
          buffers.end(),
          {contents_of(operands.conv_weight), contents(positions), contents(slot_before),
           contents(slot_after), operands.rings.empty() ? poisoned(1) : contents(operands.rings)});
    }
    const Dim3 grid{n_groups,
                    is_row ? 1 : (rows + spare_rows + params.group_rows - 1) / params.group_rows};
    const KernelId row_kernel = has_small() ? KernelId::strip_row_small : KernelId::strip_row;
    const KernelId rows_kernel =
        has_small() ? KernelId::strip_projection_small : KernelId::strip_projection;
    auto results = run_everywhere(
        call(is_row ? row_kernel : rows_kernel, std::move(buffers), launch, grid, {STRIP_THREADS}));
    const auto first = results.begin() + 5 + STRIP_PARTS;
    return {first, is_row ? results.end() : first + STRIP_PARTS};
  }

  /// Channels of a convolution behind a matrix of the first type.
  void expect_convolved(std::int64_t channels) {
    const auto ring_floats = static_cast<std::size_t>((STRIP_TAPS - 1) * channels);
    const auto matrix = add_matrix(channels, 512);
    const graph::CausalConv conv{0, weights_.add_uniform("conv", {channels, STRIP_TAPS}, -1, 1)};
    for (const std::int32_t position : shapes<std::int32_t>({0, 1, 2, 7})) {
      SCOPED_TRACE(position);
      graph::HostStateCache cache({2,
                                   {{.n_heads = 1,
                                     .key_dim = 4,
                                     .value_dim = 16,
                                     .conv_channels = channels,
                                     .conv_taps = STRIP_TAPS}}});
      if (position > 0) {
        const RecurrentStep before({{0, position, 1, {}}});
        ASSERT_TRUE(graph::run_op(conv, weights_.table(), {random_matrix(position, channels, 3)},
                                  before.step, cache));
      }
      std::vector<float> rings(2 * ring_floats, std::nanf(""));
      if (position > 0) {
        std::copy_n(cache.ring(0, 1), ring_floats,
                    rings.begin() + static_cast<std::ptrdiff_t>(ring_floats));
      }
      const Matrix x = random_matrix(1, 512, 4);
      const RecurrentStep step({{position, 1, 1, {0}}});
      const Matrix expected = graph::run_op(conv, weights_.table(),
                                            {op(graph::MatMul{matrix, {}}, {x})}, step.step, cache)
                                  .value();
      StripParams params = params_of(512);
      params.n_out[0] = static_cast<u32>(channels);
      params.has_conv = 1;
      params.slot_stride = ring_floats;
      positions = {position};
      const auto results = run(params, x,
                               {.matrices = {matrix},
                                .conv_weight = values<float>(weights_.bytes(conv.weight)),
                                .rings = rings});
      expect_bits(results[0], expected.data);
      const auto after = values<float>(results.back());
      expect_bits(contents(std::vector<float>(
                      after.begin(), after.begin() + static_cast<std::ptrdiff_t>(ring_floats))),
                  {cache.ring(0, 0), cache.ring(0, 0) + ring_floats});
    }
  }

  graph::RandomWeights weights_{3};
  std::vector<i32> positions{4};
  u32 group_strips = 2;
  u32 chain_shift = 2;  // of a group_strips of 2
};

TEST_P(GpuStrips, NormsItsInputAndMultipliesFourMatrices) {
  struct Size {
    std::int64_t rows, n;
  };
  for (const auto& [rows, n] : shapes<Size>(
           {{n_rows, 256}, {many_rows, 1280}, {n_rows, 512}, {1, 256}, {1, 2304}, {1, 512}})) {
    const auto norm = add_norm(n);
    const Matrix x = random_matrix(rows, n, 4);
    const Matrix normed = op(graph::RmsNorm{norm, eps}, {x});
    StripParams params = params_of(n);
    params.group_rows = rows == many_rows ? most_rows() : 2;
    params.has_norm = 1;
    params.eps = eps;
    Operands operands;
    operands.norm = values<float>(weights_.bytes(norm));
    std::vector<Matrix> expected;
    for (std::size_t i = 0; i < STRIP_PARTS; ++i) {
      params.n_out[i] = static_cast<u32>(n_outs[i]);
      operands.matrices.push_back(add_matrix(n_outs[i], n, i));
      expected.push_back(op(graph::MatMul{operands.matrices.back(), {}}, {normed}));
    }
    const auto results = run(params, x, operands);
    for (std::size_t i = 0; i < STRIP_PARTS; ++i) {
      expect_bits(results[i], expected[i].data);
    }
  }
}

TEST_P(GpuStrips, TakesTheLongestRowsOneAtATime) {
  constexpr std::int64_t n = 256 * STRIP_MAX_BLOCKS;
  constexpr std::int64_t rows = 2;
  const Matrix x = random_matrix(rows, n, 4);
  const auto matrix = add_matrix(n_outs[0], n);
  StripParams params = params_of(n);
  params.group_rows = 1;
  params.n_out[0] = static_cast<u32>(n_outs[0]);
  chain_shift = 0;  // what simdgroups put aside would have no room
  expect_bits(run(params, x, {.matrices = {matrix}})[0], op(graph::MatMul{matrix, {}}, {x}).data);
}

TEST_P(GpuStrips, GatesByRowThenAddsTheResidual) {
  for (const std::int64_t rows : {n_rows, std::int64_t{1}}) {
    const auto matrix = add_matrix(n_outs[0], 512);
    const Matrix x = random_matrix(rows, 512, 4);
    const Matrix row_gate = random_matrix(rows, 1, 5);
    const Matrix residual = random_matrix(rows, n_outs[0], 6);
    const Matrix product = op(graph::MatMul{matrix, {}}, {x});
    const Matrix factor = op(graph::Activation{ActivationKind::sigmoid}, {row_gate});
    const Matrix expected = op(graph::Add{}, {residual, op(graph::Mul{}, {product, factor})});

    StripParams params = params_of(512);
    params.n_out[0] = static_cast<u32>(n_outs[0]);
    params.has_row_gate = params.has_residual = 1;
    params.row_activation = static_cast<u32>(ActivationKind::sigmoid);
    Operands operands{.row_gate = row_gate.data, .residual = residual.data, .matrices = {matrix}};
    expect_bits(run(params, x, operands)[0], expected.data);
  }
}

TEST_P(GpuStrips, MultipliesRowsLongerThanTheirParts) {
  for (const std::int64_t rows : {std::int64_t{1}, n_rows}) {
    const auto norm = add_norm(4608);
    const auto matrix = add_matrix(n_outs[0], 4608);
    const Matrix x = random_matrix(rows, 4608, 4);
    StripParams params = params_of(4608);
    params.n_out[0] = static_cast<u32>(n_outs[0]);
    const Matrix product = op(graph::MatMul{matrix, {}}, {x});
    expect_bits(run(params, x, {.matrices = {matrix}})[0], product.data);
    const Matrix normed = op(graph::RmsNorm{norm, eps}, {x});
    params.has_norm = 1;
    params.eps = eps;
    expect_bits(
        run(params, x, {.norm = values<float>(weights_.bytes(norm)), .matrices = {matrix}})[0],
        op(graph::MatMul{matrix, {}}, {normed}).data);
  }
}

TEST_P(GpuStrips, MultipliesTheLongestRows) {
  constexpr std::int64_t n = 256 * STRIP_MAX_BLOCKS;
  const auto matrix = add_matrix(n_outs[0], n);
  for (const std::int64_t rows : {n_rows, std::int64_t{1}}) {
    if (rows > 1 && !has_small()) {
      continue;  // others are shorter
    }
    const Matrix x = random_matrix(rows, n, 4);
    StripParams params = params_of(n);
    params.n_out[0] = static_cast<u32>(n_outs[0]);
    params.group_rows = 1;
    expect_bits(run(params, x, {.matrices = {matrix}})[0], op(graph::MatMul{matrix, {}}, {x}).data);
  }
}

TEST_P(GpuStrips, GivesTheSameBitsWithManyStripsForAThreadgroup) {
  if (GetParam().name == "F32") {
    GTEST_SKIP() << "of floats a threadgroup has one";
  }
  constexpr std::int64_t n_out = 301;  // strips for each simdgroup, and for some another
  group_strips = 19;
  const auto norm = add_norm(512);
  const auto matrix = add_matrix(n_out, 512);
  for (const std::int64_t rows : {n_rows, std::int64_t{1}}) {
    const Matrix x = random_matrix(rows, 512, 4);
    const Matrix row_gate = random_matrix(rows, 1, 5);
    const Matrix residual = random_matrix(rows, n_out, 6);
    const Matrix normed = op(graph::RmsNorm{norm, eps}, {x});
    const Matrix product = op(graph::MatMul{matrix, {}}, {normed});
    const Matrix factor = op(graph::Activation{ActivationKind::sigmoid}, {row_gate});
    const Matrix expected = op(graph::Add{}, {residual, op(graph::Mul{}, {product, factor})});
    StripParams params = params_of(512);
    params.n_out[0] = static_cast<u32>(n_out);
    params.has_norm = params.has_row_gate = params.has_residual = 1;
    params.eps = eps;
    params.row_activation = static_cast<u32>(ActivationKind::sigmoid);
    for (const u32 shift : shapes<u32>({0, 1, 3})) {
      chain_shift = shift;
      expect_bits(run(params, x,
                      {.norm = values<float>(weights_.bytes(norm)),
                       .row_gate = row_gate.data,
                       .residual = residual.data,
                       .matrices = {matrix}})[0],
                  expected.data);
    }
  }
}

TEST_P(GpuStrips, ConvolvesWhatComesOfTheFirstMatrix) {
  if (GetParam().name == "F32") {
    GTEST_SKIP() << "of floats nothing is convolved";
  }
  // The second time with strips for all simdgroups of a threadgroup.
  for (const auto& [channels, n_strips] :
       shapes<std::pair<std::int64_t, u32>>({{n_outs[0], 2}, {171, 11}})) {
    group_strips = n_strips;
    expect_convolved(channels);
  }
}
/// A pair has blocks of one type.
class GpuStripPair : public GpuStrips {};

TEST_P(GpuStripPair, MultipliesGateAndUp) {
  for (const std::int64_t rows : {n_rows, std::int64_t{1}}) {
    const auto gate = add_matrix(n_outs[0], 512);
    const auto up = add_matrix(n_outs[0], 512);
    const Matrix x = random_matrix(rows, 512, 4);
    const Matrix factor =
        op(graph::Activation{ActivationKind::silu}, {op(graph::MatMul{gate, {}}, {x})});
    const Matrix expected = op(graph::Mul{}, {factor, op(graph::MatMul{up, {}}, {x})});
    StripParams params = params_of(512);
    params.n_out[0] = params.n_out[1] = static_cast<u32>(n_outs[0]);
    params.is_pair = 1;
    params.activation = static_cast<u32>(ActivationKind::silu);
    Operands operands{.matrices = {gate, up}};
    expect_bits(run(params, x, operands)[0], expected.data);
  }
}

TEST_P(GpuStripPair, GivesTheSameBitsWithManyStripsForAThreadgroup) {
  constexpr std::int64_t n_out = 301;
  group_strips = 19;
  const auto gate = add_matrix(n_out, 512);
  const auto up = add_matrix(n_out, 512);
  for (const std::int64_t rows : {n_rows, std::int64_t{1}}) {
    const Matrix x = random_matrix(rows, 512, 4);
    const Matrix factor =
        op(graph::Activation{ActivationKind::silu}, {op(graph::MatMul{gate, {}}, {x})});
    const Matrix expected = op(graph::Mul{}, {factor, op(graph::MatMul{up, {}}, {x})});
    StripParams params = params_of(512);
    params.n_out[0] = params.n_out[1] = static_cast<u32>(n_out);
    params.is_pair = 1;
    params.activation = static_cast<u32>(ActivationKind::silu);
    for (const u32 shift : shapes<u32>({0, 1, 2})) {
      chain_shift = shift;
      expect_bits(run(params, x, {.matrices = {gate, up}})[0], expected.data);
    }
  }
}

constexpr StripTypes q4_k{"Q4_K", {"Q4_K", "Q4_K", "Q4_K", "Q4_K"}};
constexpr StripTypes q5_k{"Q5_K", {"Q5_K", "Q5_K", "Q5_K", "Q5_K"}};
constexpr StripTypes q6_k{"Q6_K", {"Q6_K", "Q6_K", "Q6_K", "Q6_K"}};
constexpr StripTypes q8_0{"Q8_0", {"Q8_0", "Q8_0", "Q8_0", "Q8_0"}};
constexpr StripTypes q4_0{"Q4_0", {"Q4_0", "IQ4_NL", "Q4_0", "IQ4_NL"}};
constexpr StripTypes mxfp4{"MXFP4", {"MXFP4", "MXFP4", "MXFP4", "MXFP4"}};
constexpr StripTypes f32_alone{"F32", {"F32", "F32", "F32", "F32"}};
constexpr StripTypes mixed{"Mixed", {"Q6_K", "F32", "Q4_K", "F32"}};
constexpr StripTypes mixed_small{"MixedSmall", {"Q8_0", "F32", "IQ4_NL", "Q4_0"}};

std::string name_of_strips(const testing::TestParamInfo<StripTypes>& info) {
  return std::string(info.param.name);
}

INSTANTIATE_TEST_SUITE_P(Types, GpuStrips,
                         testing::Values(q4_k, q5_k, q6_k, q8_0, q4_0, mxfp4, mixed, mixed_small,
                                         f32_alone),
                         name_of_strips);
INSTANTIATE_TEST_SUITE_P(Types, GpuStripPair, testing::Values(q4_k, q5_k, q6_k, q8_0, q4_0, mxfp4),
                         name_of_strips);

}  // namespace
}  // namespace hearth::backend::gpu
