/// ExpertMatMul and ExpertSum.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/registry.h"
#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::graph {
namespace {

/// Two rows that use experts 2 and 0, and 1 and 2.
Matrix two_of_three() {
  return {2, 4, {2, 0, 0.75f, 0.25f, 1, 2, 0.5f, 0.5f}};
}

/// Row `row` of x times rows [first, first + n) of `expert`, by the plain MatMul.
std::vector<float> product(const RandomWeights& experts, std::int64_t expert, std::int64_t first,
                           std::int64_t n, std::vector<float> x) {
  const auto& all = experts.table().front().tensor;
  const auto row_bytes = static_cast<std::size_t>(quant::row_bytes(all.dtype, all.shape.back()));
  const auto begin = static_cast<std::size_t>(expert * all.shape[1] + first) * row_bytes;
  const WeightTable one{{"one expert",
                         {all.dtype, Shape{n, all.shape.back()},
                          all.data.subspan(begin, static_cast<std::size_t>(n) * row_bytes)}}};
  const auto width = static_cast<std::int64_t>(x.size());
  return run_op(MatMul{WeightId{0}}, one, {{1, width, std::move(x)}}).value().data;
}

TEST(ExpertMatmul, IsTheProductOfEachRowWithTheExpertsOfItsChoice) {
  for (const auto* type : {"F32", "Q4_K", "Q8_0"}) {
    RandomWeights weights(1);
    weights.add("experts", quant::find(type)->dtype, Shape{3, 6, 256});
    const Matrix x = random_matrix(2, 256, 2);
    // Gate first, up behind it.
    for (const std::int64_t first : {0, 3}) {
      const auto y =
          run_op(ExpertMatMul{WeightId{0}, first, 3}, weights.table(), {x, two_of_three()}).value();
      for (std::int64_t row = 0; row < 2; ++row) {
        for (std::int64_t slot = 0; slot < 2; ++slot) {
          const auto expert = static_cast<std::int64_t>(two_of_three().at(row, slot));
          const auto* begin = x.data.data() + row * 256;
          const auto expected = product(weights, expert, first, 3, {begin, begin + 256});
          for (std::int64_t i = 0; i < 3; ++i) {
            EXPECT_EQ(y.at(row, slot * 3 + i), expected[static_cast<std::size_t>(i)]) << type;
          }
        }
      }
    }
  }
}

TEST(ExpertMatmul, TakesAnInputForEachSlot) {
  RandomWeights weights(3);
  weights.add("experts", DType::f32, Shape{3, 5, 8});
  const Matrix x = random_matrix(2, 16, 4);
  const auto y =
      run_op(ExpertMatMul{WeightId{0}, 0, 5}, weights.table(), {x, two_of_three()}).value();
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t slot = 0; slot < 2; ++slot) {
      const auto expert = static_cast<std::int64_t>(two_of_three().at(row, slot));
      const auto* begin = x.data.data() + row * 16 + slot * 8;
      const auto expected = product(weights, expert, 0, 5, {begin, begin + 8});
      for (std::int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(y.at(row, slot * 5 + i), expected[static_cast<std::size_t>(i)]);
      }
    }
  }
}

TEST(ExpertMatmul, RefusesATensorOfAnotherShape) {
  RandomWeights weights(3);
  weights.add("experts", DType::f32, Shape{3, 5, 8});
  const auto refuse = [&](const ExpertMatMul& op, std::int64_t width) {
    const auto out = run_op(op, weights.table(), {random_matrix(2, width, 4), two_of_three()});
    ASSERT_FALSE(out.has_value());
    EXPECT_THAT(out.error().message, testing::HasSubstr("tensor 'experts' is F32 [3, 5, 8]"));
  };
  refuse({WeightId{0}, 0, 5}, 9);
  refuse({WeightId{0}, 1, 5}, 8);
  refuse({WeightId{0}, -1, 5}, 8);
  refuse({WeightId{0}, 0, 0}, 8);
}

TEST(ExpertSum, WeighsTheOutputsOfTheSlots) {
  const Matrix x{2, 6, {1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60}};
  const auto y = run_op(ExpertSum{}, {}, {x, two_of_three()}).value();
  EXPECT_THAT(y.data, testing::ElementsAre(3.25f, 6.5f, 9.75f, 22, 27.5f, 33));
}

TEST(ExpertSum, RefusesFeaturesThatAreNoWholeSlots) {
  const auto out = run_op(ExpertSum{}, {}, {random_matrix(2, 7, 1), two_of_three()});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message, testing::HasSubstr("7 features do not divide into 2 slots"));
}

}  // namespace
}  // namespace hearth::graph
