#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/token_id.h"
#include "tokenizer/hash.h"

namespace hearth::tokenizer {

/// Pair of tokens to a number: open addressing with linear probing, at most half full.
/// Reading is thread-safe.
class PairIndex {
 public:
  /// Room for `n_pairs` insertions.
  explicit PairIndex(std::size_t n_pairs) : slots_(std::bit_ceil(2 * n_pairs + 1)) {}

  /// Adds the pair, unless it is there already. Tokens are not negative.
  void insert(TokenId left, TokenId right, std::uint32_t value) {
    Slot& slot = slots_[position_of(key_of(left, right))];
    if (slot.key == free_key) {
      slot = {key_of(left, right), value};
    }
  }

  [[nodiscard]] std::optional<std::uint32_t> find(TokenId left, TokenId right) const {
    const Slot& slot = slots_[position_of(key_of(left, right))];
    return slot.key != free_key ? std::optional(slot.value) : std::nullopt;
  }

 private:
  static constexpr std::uint64_t free_key = ~std::uint64_t{0};

  struct Slot {
    std::uint64_t key = free_key;
    std::uint32_t value = 0;
  };

  static std::uint64_t key_of(TokenId left, TokenId right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
           static_cast<std::uint32_t>(right);
  }

  [[nodiscard]] std::size_t position_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t position = static_cast<std::size_t>(hash_(key)) & mask;
    while (slots_[position].key != free_key && slots_[position].key != key) {
      position = (position + 1) & mask;
    }
    return position;
  }

  SeededHash hash_;
  std::vector<Slot> slots_;
};

}  // namespace hearth::tokenizer
