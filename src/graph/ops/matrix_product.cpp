#include "graph/ops/matrix_product.h"

#include <array>
#include <cmath>
#include <vector>

#include "quant/activation.h"
#include "quant/integer_form.h"
#include "quant/registry.h"

namespace hearth::graph {
namespace {

/// x quantized for one layout; owns what quant::ActivationRow borrows.
struct Int8Row {
  Int8Row(const float* x, std::int64_t n, int block)
      : codes(static_cast<std::size_t>(n)),
        scales(static_cast<std::size_t>(n / block)),
        sums(static_cast<std::size_t>(n / quant::activation_sum_group)) {
    quant::quantize_activations({x, static_cast<std::size_t>(n)}, block, {codes, scales, sums});
  }
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<std::int16_t> sums;
};

float integer_dot(DType dtype, const quant::IntegerLayout& layout, Bytes row, const Int8Row& x) {
  const auto& info = quant::info(dtype);
  const auto block_weights = static_cast<std::size_t>(info.block_weights);
  const auto unit_weights = static_cast<std::size_t>(layout.unit);
  const auto block_bytes = static_cast<std::size_t>(info.block_bytes);
  quant::IntegerBlock block;
  float acc = 0;
  for (std::size_t k = 0; k < x.codes.size(); k += block_weights) {
    quant::to_integers(dtype, row.subspan(k / block_weights * block_bytes, block_bytes), block);
    for (std::size_t unit = 0; unit < block_weights / unit_weights; ++unit) {
      std::int32_t isum = 0;
      std::int32_t msum = 0;
      for (std::size_t i = unit * unit_weights; i < (unit + 1) * unit_weights; ++i) {
        isum += block.sub_scales[i / 16] * (layout.code_zero + block.codes[i]) * x.codes[k + i];
      }
      for (std::size_t group = unit * unit_weights / 16; group < (unit + 1) * unit_weights / 16;
           ++group) {
        msum += block.sub_offsets[group] * x.sums[k / 16 + group];
      }
      const float da =
          x.scales[(k + unit * unit_weights) / static_cast<std::size_t>(layout.activation_block)];
      acc = std::fma(block.scales[unit] * da, static_cast<float>(isum), acc);
      if (layout.has_offset) {
        acc = std::fma(block.offsets[unit] * da, static_cast<float>(msum), acc);
      }
    }
  }
  return acc;
}

float float_dot(std::span<const float> weight, const float* x) {
  std::array<float, 4> partial{};
  for (std::size_t k = 0; k < weight.size(); ++k) {
    partial[k % 4] = std::fma(weight[k], x[k], partial[k % 4]);
  }
  return (partial[0] + partial[1]) + (partial[2] + partial[3]);
}

}  // namespace

void multiply_matrix(DType dtype, Bytes matrix, const ConstRows& x, const Rows& out) {
  const auto* layout = quant::integer_layout(dtype);
  const auto row_bytes = static_cast<std::size_t>(quant::row_bytes(dtype, x.features));

  std::vector<Int8Row> int8_rows;
  if (layout != nullptr) {
    for (std::int64_t row = 0; row < x.rows; ++row) {
      int8_rows.emplace_back(x.row(row), x.features, layout->activation_block);
    }
  }
  std::vector<float> decoded(layout == nullptr ? static_cast<std::size_t>(x.features) : 0);
  for (std::int64_t o = 0; o < out.features; ++o) {
    const Bytes weight_row = matrix.subspan(static_cast<std::size_t>(o) * row_bytes, row_bytes);
    if (layout == nullptr) {
      quant::decode(dtype, weight_row, decoded);
    }
    for (std::int64_t row = 0; row < x.rows; ++row) {
      out.row(row)[o] = layout != nullptr ? integer_dot(dtype, *layout, weight_row,
                                                        int8_rows[static_cast<std::size_t>(row)])
                                          : float_dot(decoded, x.row(row));
    }
  }
}

}  // namespace hearth::graph
