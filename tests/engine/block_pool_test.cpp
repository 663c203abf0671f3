#include "engine/kv/block_pool.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace hearth::engine {
namespace {

TEST(BlockPool, RefusesMoreThanIsFreeAndThenChangesNothing) {
  BlockPool pool(4);
  std::vector<std::int32_t> table;
  ASSERT_TRUE(pool.allocate(3, table).has_value());
  const auto before = table;
  const auto refused = pool.allocate(2, table);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(table, before);
  EXPECT_EQ(pool.n_free(), 1);
}

TEST(BlockPool, RandomUseNeverSharesABlockNorLosesOne) {
  constexpr std::int64_t n_blocks = 50;
  BlockPool pool(n_blocks);
  std::vector<std::vector<std::int32_t>> owners(8);
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    auto& owner = owners[random() % owners.size()];
    if (random() % 3 == 0) {
      pool.free(owner);
    } else {
      static_cast<void>(pool.allocate(static_cast<std::int64_t>(random() % 9), owner));
    }
    std::multiset<std::int32_t> owned;
    for (const auto& table : owners) {
      owned.insert(table.begin(), table.end());
    }
    EXPECT_EQ(std::set<std::int32_t>(owned.begin(), owned.end()).size(), owned.size());
    EXPECT_EQ(static_cast<std::int64_t>(owned.size()) + pool.n_free(), n_blocks);
  }
}

}  // namespace
}  // namespace hearth::engine
