#pragma once

#include <cstdint>
#include <vector>

namespace hearth::engine {

/// The slot of a sequence that has none.
inline constexpr std::int32_t no_slot = -1;

/// Hands out numbered places: slots of the recurrent state, seats of running sequences. One belongs
/// to exactly one owner at a time; the next finds state as the last one left it, and zeroes it by
/// starting at position 0. One thread at a time.
class SlotPool {
 public:
  explicit SlotPool(std::int64_t n_slots);

  [[nodiscard]] std::int64_t n_free() const { return static_cast<std::int64_t>(free_.size()); }

  /// A free slot; there must be one.
  std::int32_t allocate();
  /// Takes `slot` back and makes it no_slot; does nothing for no_slot.
  void free(std::int32_t& slot);

 private:
  std::vector<std::int32_t> free_;  // lowest number last, so that it goes out first
};

}  // namespace hearth::engine
