#include "engine/state/slot_pool.h"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace hearth::engine {
namespace {

TEST(SlotPool, RandomUseNeverSharesASlotNorLosesOne) {
  constexpr std::int64_t n_slots = 5;
  SlotPool pool(n_slots);
  std::vector<std::int32_t> owners(n_slots, no_slot);
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    auto& owner = owners[random() % owners.size()];
    if (owner == no_slot) {
      owner = pool.allocate();
    } else {
      pool.free(owner);
    }
    std::multiset<std::int32_t> owned(owners.begin(), owners.end());
    owned.erase(no_slot);
    EXPECT_EQ(std::set<std::int32_t>(owned.begin(), owned.end()).size(), owned.size());
    EXPECT_EQ(static_cast<std::int64_t>(owned.size()) + pool.n_free(), n_slots);
  }
}

TEST(SlotPool, TakesNothingBackFromWhoeverHasNoSlot) {
  SlotPool pool(2);
  std::int32_t none = no_slot;
  pool.free(none);
  EXPECT_EQ(pool.n_free(), 2);
}

}  // namespace
}  // namespace hearth::engine
