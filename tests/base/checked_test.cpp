#include "base/checked.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr auto max_u64 = std::numeric_limits<std::uint64_t>::max();

TEST(Checked, ReportsOverflowInsteadOfWrapping) {
  EXPECT_EQ(checked_add<std::uint64_t>(max_u64 - 1, 1), max_u64);
  EXPECT_EQ(checked_add<std::uint64_t>(max_u64, 1), std::nullopt);
  EXPECT_EQ(checked_mul<std::int64_t>(std::int64_t{1} << 62, 2), std::nullopt);
  EXPECT_EQ(checked_mul<std::int64_t>(3, 5), 15);
}

TEST(Checked, RoundsUpToAPowerOfTwo) {
  EXPECT_EQ(checked_round_up(0, 32), 0u);
  EXPECT_EQ(checked_round_up(33, 32), 64u);
  EXPECT_EQ(checked_round_up(max_u64 - 3, 32), std::nullopt);
}

}  // namespace
}  // namespace hearth
