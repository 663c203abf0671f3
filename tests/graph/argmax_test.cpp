#include "graph/ops/argmax.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"

namespace hearth::graph {
namespace {

Matrix argmax_of(const Matrix& x, std::int64_t n_columns) {
  return run_op(Argmax{n_columns}, {}, {x}).value();
}

TEST(Argmax, GivesColumnAndValueOfEachRow) {
  const Matrix x{2, 4, {0.5f, -2.0f, 3.0f, 3.0f, -1.0f, -0.25f, -7.0f, -0.5f}};
  EXPECT_THAT(argmax_of(x, 4).data, testing::ElementsAre(2, 3.0f, 1, -0.25f));
}

TEST(Argmax, LeavesFurtherColumnsOut) {
  const Matrix x{2, 3, {1, 2, 9, 4, 3, NAN}};
  EXPECT_THAT(argmax_of(x, 2).data, testing::ElementsAre(1, 2, 0, 4));
}

TEST(Argmax, TellsOfWhatIsNoNumber) {
  const Matrix x{2, 3, {1, INFINITY, 9, -INFINITY, NAN, INFINITY}};
  const auto found = argmax_of(x, 3);
  EXPECT_THAT(std::vector(found.data.begin(), found.data.end() - 1),
              testing::ElementsAre(1, INFINITY, 1));
  EXPECT_TRUE(std::isnan(found.at(1, 1)));
}

TEST(Argmax, RefusesColumnsThatARowHasNot) {
  const Matrix x{1, 3, {1, 2, 3}};
  EXPECT_FALSE(run_op(Argmax{0}, {}, {x}));
  EXPECT_FALSE(run_op(Argmax{4}, {}, {x}));
}

}  // namespace
}  // namespace hearth::graph
