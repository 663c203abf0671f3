#include "graph/ops/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"

namespace hearth::graph {
namespace {

using testing::ElementsAre;

Matrix top_of(const Matrix& x, std::int64_t n_columns, std::int64_t k) {
  return run_op(TopK{n_columns, k}, {}, {x}).value();
}

TEST(TopK, GivesTheLargestOfEachRowInOrderOfColumns) {
  const Matrix x{2, 5, {0.5f, 4.0f, -2.0f, 3.0f, 1.0f, -1.0f, -0.25f, -7.0f, -0.5f, -8.0f}};
  EXPECT_THAT(top_of(x, 5, 2).data, ElementsAre(1, 4.0f, 3, 3.0f, 1, -0.25f, 3, -0.5f));
  EXPECT_THAT(top_of(x, 3, 3).data,
              ElementsAre(0, 0.5f, 1, 4.0f, 2, -2.0f, 0, -1.0f, 1, -0.25f, 2, -7.0f));
}

TEST(TopK, TakesTheLowerColumnsOfEqualValues) {
  const Matrix x{1, 7, {-0.0f, 2, 0.0f, -INFINITY, 2, -0.0f, 2}};
  EXPECT_THAT(top_of(x, 7, 2).data, ElementsAre(1, 2, 4, 2));
  EXPECT_THAT(top_of(x, 7, 5).data, ElementsAre(0, 0, 1, 2, 2, 0, 4, 2, 6, 2));
}

TEST(TopK, PutsTheFirstThatAreNoNumbersBeforeAllNumbers) {
  const Matrix x{1, 6, {1, 1e38f, INFINITY, NAN, 3e38f, -NAN}};
  const auto found = top_of(x, 6, 2);
  EXPECT_THAT(found.at(0, 0), 2);
  EXPECT_THAT(found.at(0, 1), INFINITY);
  EXPECT_THAT(found.at(0, 2), 3);
  EXPECT_TRUE(std::isnan(found.at(0, 3)));
}

TEST(TopK, IsTheBeginningOfASort) {
  Matrix x = random_matrix(3, 4000, 5);
  for (float& value : x.data) {
    value = std::round(value * 300);  // many are equal
  }
  for (const std::int64_t k : {1, 128, 3999}) {
    const Matrix found = top_of(x, 4000, k);
    for (std::int64_t row = 0; row < 3; ++row) {
      std::vector<float> columns(4000);
      std::iota(columns.begin(), columns.end(), 0.0f);
      const auto value = [&](float column) { return x.at(row, static_cast<std::int64_t>(column)); };
      std::ranges::sort(columns, [&](float a, float b) {
        return value(a) != value(b) ? value(a) > value(b) : a < b;
      });
      columns.resize(static_cast<std::size_t>(k));
      std::ranges::sort(columns);
      for (std::int64_t i = 0; i < k; ++i) {
        const float column = columns[static_cast<std::size_t>(i)];
        ASSERT_EQ(found.at(row, 2 * i), column);
        ASSERT_EQ(found.at(row, 2 * i + 1), value(column));
      }
    }
  }
}

TEST(TopK, RefusesColumnsThatARowHasNot) {
  const Matrix x{1, 3, {1, 2, 3}};
  EXPECT_FALSE(run_op(TopK{0, 1}, {}, {x}));
  EXPECT_FALSE(run_op(TopK{4, 1}, {}, {x}));
  EXPECT_FALSE(run_op(TopK{3, 0}, {}, {x}));
  EXPECT_FALSE(run_op(TopK{2, 3}, {}, {x}));
}

}  // namespace
}  // namespace hearth::graph
