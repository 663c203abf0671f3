#include "graph/ops/concat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"

namespace hearth::graph {
namespace {

TEST(Concat, PutsTheSecondRowBehindTheFirst) {
  const Matrix a{2, 2, {1, 2, 3, 4}};
  const Matrix b{2, 1, {5, 6}};
  const auto both = run_op(Concat{}, {}, {a, b}).value();
  EXPECT_EQ(both.features, 3);
  EXPECT_THAT(both.data, testing::ElementsAre(1, 2, 5, 3, 4, 6));
}

TEST(Concat, RefusesDifferentNumbersOfRows) {
  const auto refused = run_op(Concat{}, {}, {random_matrix(2, 2, 1), random_matrix(3, 2, 2)});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("2 and 3 rows"));
}

}  // namespace
}  // namespace hearth::graph
