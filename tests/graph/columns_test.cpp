#include "graph/ops/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"

namespace hearth::graph {
namespace {

TEST(Columns, TakesQueryAndGateOfEachHeadNotTwoHalves) {
  // Two heads of length 2: query, gate, query, gate.
  const Matrix x{1, 8, {1, 2, -1, -2, 3, 4, -3, -4}};
  const auto query = run_op(Columns{{4, 0, 2}}, {}, {x}).value();
  const auto gate = run_op(Columns{{4, 2, 2}}, {}, {x}).value();
  EXPECT_THAT(query.data, testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(gate.data, testing::ElementsAre(-1, -2, -3, -4));
}

TEST(Columns, RefusesAPatternThatDoesNotFit) {
  const Matrix x = random_matrix(1, 9, 1);
  EXPECT_FALSE(run_op(Columns{{4, 0, 2}}, {}, {x}).has_value());
  EXPECT_FALSE(run_op(Columns{{3, 2, 2}}, {}, {x}).has_value());
  EXPECT_THAT(run_op(Columns{{3, 1, 3}}, {}, {x}).error().message,
              testing::HasSubstr("3 columns from 1 on of every 3"));
}

}  // namespace
}  // namespace hearth::graph
