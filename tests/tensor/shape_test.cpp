#include "tensor/shape.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Shape, IsOutermostFirst) {
  const Shape weight{3, 5};
  EXPECT_EQ(weight.rank(), 2);
  EXPECT_EQ(weight[0], 3);
  EXPECT_EQ(weight[-1], 5);
  EXPECT_EQ(weight.elements(), 15);
  EXPECT_EQ(weight.n_rows(), 3);
  EXPECT_EQ(to_string(weight), "[3, 5]");
}

TEST(Shape, RankZeroIsAScalar) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ(Shape{}.n_rows(), 1);
  EXPECT_EQ(to_string(Shape{}), "[]");
}

}  // namespace
}  // namespace hearth
