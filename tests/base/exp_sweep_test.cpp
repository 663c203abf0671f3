#include <gtest/gtest.h>

#include "tests/base/exp_error.h"

namespace hearth {
namespace {

TEST(CanonicalExp, IsWithinTwoUlpForEveryFloatInRange) {
  EXPECT_LE(worst_exp_error(1), 2.0);
}

}  // namespace
}  // namespace hearth
