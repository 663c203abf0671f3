#include "graph/ops/matmul.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/registry.h"
#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::graph {
namespace {

std::vector<float> decoded(const TensorView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.shape.elements()));
  quant::decode(view.dtype, view.data, values);
  return values;
}

/// Largest magnitude in the `block` of x that holds element i of a row, times 1/254: the most that
/// rounding to int8 moves a value. 0 for float activations.
double rounding_of_activations(const Matrix& x, std::int64_t row, std::int64_t i, int block) {
  double largest = 0;
  for (std::int64_t j = i / block * block; j < i / block * block + block; ++j) {
    largest = std::max(largest, std::abs(static_cast<double>(x.at(row, j))));
  }
  return largest / 254.0;
}

void expect_product(const WeightTable& weights, WeightId weight, const Matrix& x,
                    const Matrix& out) {
  const auto& view = tensor(weights, weight);
  const auto w = decoded(view);
  const auto* layout = quant::integer_layout(view.dtype);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t o = 0; o < out.features; ++o) {
      double sum = 0;
      double tolerance = 0;
      for (std::int64_t i = 0; i < x.features; ++i) {
        const double weight_value = w[static_cast<std::size_t>(o * x.features + i)];
        const double product = weight_value * static_cast<double>(x.at(row, i));
        sum += product;
        // Float sums round once per addition; int8 activations move each factor.
        tolerance += std::abs(product) * 0x1p-24 * static_cast<double>(x.features);
        if (layout != nullptr) {
          tolerance += std::abs(weight_value) * 1.001 *
                       rounding_of_activations(x, row, i, layout->activation_block);
        }
      }
      EXPECT_NEAR(out.at(row, o), sum, tolerance) << quant::name(view.dtype);
    }
  }
}

TEST(Matmul, MultipliesWithEveryDecodableType) {
  for (const auto& type : quant::all()) {
    if (quant::is_float_decodable(type.dtype)) {
      RandomWeights weights(3);
      const WeightId weight = weights.add("w", type.dtype, {5, 512});
      const Matrix x = random_matrix(3, 512, 4);
      expect_product(weights.table(), weight, x,
                     run_op(MatMul{weight, {}}, weights.table(), {x}).value());
    }
  }
}

TEST(Matmul, TakesRowsOfAnyLengthForPlainFloats) {
  for (const std::int64_t n_in : {1, 3, 4, 30}) {
    RandomWeights weights(3);
    const WeightId weight = weights.add("w", DType::bf16, {2, n_in});
    const Matrix x = random_matrix(1, n_in, 4);
    expect_product(weights.table(), weight, x,
                   run_op(MatMul{weight, {}}, weights.table(), {x}).value());
  }
}

TEST(Matmul, AddsTheBiasToEveryRow) {
  RandomWeights weights(3);
  const WeightId weight = weights.add("w", DType::f32, {6, 8});
  const WeightId bias = weights.add_uniform("b", {6}, -1, 1);
  const Matrix x = random_matrix(3, 8, 4);
  const auto plain = run_op(MatMul{weight, {}}, weights.table(), {x}).value();
  const auto biased = run_op(MatMul{weight, bias}, weights.table(), {x}).value();
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t o = 0; o < 6; ++o) {
      EXPECT_EQ(biased.at(row, o), plain.at(row, o) + f32_data(weights.table(), bias)[o]);
    }
  }
}

TEST(Matmul, RefusesAWeightOfTheWrongShape) {
  RandomWeights weights(3);
  const WeightId weight = weights.add("blk.3.attn_q.weight", DType::f16, {6, 8});
  const auto out = run_op(MatMul{weight, {}}, weights.table(), {random_matrix(1, 9, 4)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message,
              testing::AllOf(testing::HasSubstr("'blk.3.attn_q.weight'"),
                             testing::HasSubstr("[6, 8]"), testing::HasSubstr("[out, 9]")));
}

TEST(Matmul, RefusesABiasOfTheWrongShapeOrType) {
  RandomWeights weights(3);
  const WeightId weight = weights.add("w", DType::f32, {6, 8});
  const WeightId shorter = weights.add_uniform("blk.3.attn_q.bias", {5}, -1, 1);
  const WeightId half = weights.add("blk.4.attn_q.bias", DType::f16, {6});
  const Matrix x = random_matrix(1, 8, 4);
  const auto wrong_shape = run_op(MatMul{weight, shorter}, weights.table(), {x});
  ASSERT_FALSE(wrong_shape.has_value());
  EXPECT_THAT(wrong_shape.error().message, testing::HasSubstr("'blk.3.attn_q.bias'"));
  const auto wrong_type = run_op(MatMul{weight, half}, weights.table(), {x});
  ASSERT_FALSE(wrong_type.has_value());
  EXPECT_THAT(wrong_type.error().message, testing::HasSubstr("'blk.4.attn_q.bias' is F16"));
}

}  // namespace
}  // namespace hearth::graph
