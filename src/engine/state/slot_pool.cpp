#include "engine/state/slot_pool.h"

#include <numeric>
#include <utility>

#include "base/assert.h"

namespace hearth::engine {

SlotPool::SlotPool(std::int64_t n_slots) : free_(static_cast<std::size_t>(n_slots)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

std::int32_t SlotPool::allocate() {
  HEARTH_ASSERT(!free_.empty());
  const std::int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void SlotPool::free(std::int32_t& slot) {
  if (slot != no_slot) {
    free_.push_back(std::exchange(slot, no_slot));
  }
}

}  // namespace hearth::engine
