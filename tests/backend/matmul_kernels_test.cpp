/// Every matrix kernel against the reference op, bit for bit: kernel sets, types, layouts, numbers
/// of rows on both sides of every switch, random and extreme operands.

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "backend/cpu/kernels/kernel_set.h"
#include "base/checked.h"
#include "quant/registry.h"
#include "tensor/buffer.h"
#include "tests/backend/step_runner.h"
#include "tests/graph/op_runner.h"
#include "tests/quant/random_blocks.h"

namespace hearth::backend::cpu {
namespace {

using graph::Matrix;

/// A matrix [n_out, n_in] in its native layout.
struct WeightRows {
  DType dtype;
  std::int64_t n_out;
  std::int64_t n_in;
  std::vector<std::byte> data;

  [[nodiscard]] std::int64_t row_bytes() const { return quant::row_bytes(dtype, n_in); }
};

/// True if the block's weights are numbers of a size that products can take.
bool is_moderate(const quant::QuantInfo& type, Bytes block) {
  std::vector<float> decoded(static_cast<std::size_t>(type.block_weights));
  quant::decode(type.dtype, block, decoded);
  return std::all_of(decoded.begin(), decoded.end(),
                     [](float weight) { return std::abs(weight) < 1e6f; });
}

/// Blocks that are too large, or no numbers, as random floats may be, are zero instead.
WeightRows random_weights(DType dtype, std::int64_t n_out, std::int64_t n_in) {
  const auto& type = quant::info(dtype);
  const auto block_bytes = static_cast<std::size_t>(type.block_bytes);
  const auto n_blocks = static_cast<std::size_t>(n_out * n_in / type.block_weights);
  auto data = quant::random_blocks(type, 5, n_blocks);
  for (std::size_t at = 0; at < data.size(); at += block_bytes) {
    if (!is_moderate(type, Bytes(data).subspan(at, block_bytes))) {
      std::fill_n(&data[at], block_bytes, std::byte{0});
    }
  }
  return {dtype, n_out, n_in, std::move(data)};
}

/// All code and integer scale bytes at 0x00, 0x7f, 0x80 or 0xff; the float scales stay as they are
/// wherever the result would not be a number.
WeightRows extreme_weights(DType dtype, std::int64_t n_out, std::int64_t n_in, std::byte value) {
  auto weights = random_weights(dtype, n_out, n_in);
  const auto& type = quant::info(dtype);
  const auto block_bytes = static_cast<std::size_t>(type.block_bytes);
  for (std::size_t at = 0; at < weights.data.size(); at += block_bytes) {
    for (std::size_t i = 0; i < block_bytes; ++i) {
      const auto before = std::exchange(weights.data[at + i], value);
      if (!is_moderate(type, Bytes(weights.data).subspan(at, block_bytes))) {
        weights.data[at + i] = before;
      }
    }
  }
  return weights;
}

/// Values all as large as the first of their block, so that codes are +127 or -127 throughout.
Matrix extreme_activations(std::int64_t rows, std::int64_t features) {
  auto x = graph::random_matrix(rows, features, 6);
  for (float& value : x.data) {
    value = value < 0.5f ? 3.0f : -3.0f;
  }
  return x;
}

Matrix reference_product(const WeightRows& weights, const Matrix& x) {
  const graph::WeightTable table{
      {"w", {weights.dtype, Shape{weights.n_out, weights.n_in}, weights.data}}};
  return graph::run_op(graph::MatMul{.weight = graph::WeightId{0}}, table, {x}).value();
}

Matrix product(const KernelSet& set, const WeightRows& weights, const Matrix& x, bool is_tiled) {
  const auto dtype = static_cast<std::size_t>(weights.dtype);
  const auto* layout = quant::integer_layout(weights.dtype);
  const std::int64_t n_steps = ceil_div(x.features, step_weights);
  std::vector<ActivationStep> steps(static_cast<std::size_t>(n_steps * x.rows + step_slack));
  for (std::int64_t row = 0; row < x.rows && layout != nullptr; ++row) {
    set.quantize(x.data.data() + row * x.features, x.features, layout->activation_block,
                 steps.data() + row, x.rows);
  }
  Buffer tiles(round_up(weights.n_out, panel_rows) * weights.row_bytes());
  for (std::int64_t row = 0; row < weights.n_out && is_tiled; row += panel_rows) {
    set.interleave[dtype](weights.data.data() + row * weights.row_bytes(), weights.row_bytes(),
                          std::min(panel_rows, weights.n_out - row), weights.n_in,
                          tiles.bytes().data() + row * weights.row_bytes());
  }
  Buffer scratch(matmul_scratch_bytes(weights.row_bytes(), weights.n_in, x.rows));
  Matrix out{x.rows, weights.n_out,
             std::vector<float>(static_cast<std::size_t>(x.rows * weights.n_out))};
  set.matmul_for(weights.dtype, x.rows)({
      .weights = is_tiled ? tiles.bytes().data() : weights.data.data(),
      .weight_row_bytes = weights.row_bytes(),
      .is_tiled = is_tiled,
      .n_in = weights.n_in,
      .n_out = weights.n_out,
      .x = {.values = x.data.data(), .steps = steps.data()},
      .n_rows = x.rows,
      .out = out.data.data(),
      .out_stride = weights.n_out,
      .scratch = scratch.bytes().data(),
  });
  return out;
}

void expect_reference_bits(const WeightRows& weights, const Matrix& x) {
  const auto expected = reference_product(weights, x);
  for (const auto& set : supported_kernel_sets()) {
    for (const bool is_tiled : {true, false}) {
      if (is_tiled && set.interleave[static_cast<std::size_t>(weights.dtype)] == nullptr) {
        continue;
      }
      const auto actual = product(set, weights, x, is_tiled);
      for (std::size_t i = 0; i < expected.data.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(expected.data[i]),
                  std::bit_cast<std::uint32_t>(actual.data[i]))
            << set.name << ", " << quant::name(weights.dtype) << (is_tiled ? " tiles" : " native")
            << ", " << x.rows << " rows, element " << i << ": expected " << expected.data[i]
            << ", got " << actual.data[i];
      }
    }
  }
}

class MatmulKernels : public testing::TestWithParam<DType> {
 protected:
  /// More than one step of activations where the type allows it, the last one not full.
  [[nodiscard]] std::int64_t n_in() const {
    const std::int64_t block = quant::info(GetParam()).block_weights;
    return block == 256 ? 768 : block == 1 ? 515 : 512 + block;
  }
};

TEST_P(MatmulKernels, GiveTheReferenceBitsForAnyNumberOfRows) {
  const auto weights = random_weights(GetParam(), 40, n_in());  // the last panel has 8 rows
  for (const auto rows :
       all_or_some<std::int64_t>({1, 2, 3, 4, 5, 8, 9, 17, 64, 71}, {1, 3, 8, 17, 71})) {
    expect_reference_bits(weights, graph::random_matrix(rows, n_in(), 7));
  }
}

TEST_P(MatmulKernels, GiveTheReferenceBitsForMorePanelsThanGoTogether) {
  const auto weights =
      random_weights(GetParam(), (max_panels_together + 3) * panel_rows - 5, n_in());
  expect_reference_bits(weights, graph::random_matrix(min_many_rows, n_in(), 7));
}

TEST_P(MatmulKernels, GiveTheReferenceBitsForExtremeOperands) {
  for (const int value : all_or_some<int>({0x00, 0x7f, 0x80, 0xff}, {0x80})) {
    const auto weights = extreme_weights(GetParam(), 16, n_in(), std::byte(value));
    for (const std::int64_t rows : {1, 4, 65}) {
      expect_reference_bits(weights, extreme_activations(rows, n_in()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulKernels, testing::ValuesIn(quant::decodable_types()),
                         [](const auto& each) { return std::string(quant::name(each.param)); });

}  // namespace
}  // namespace hearth::backend::cpu
