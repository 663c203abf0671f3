#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "tokenizer/hash.h"

namespace hearth::tokenizer {

/// Text to token id: open addressing with linear probing, at most half full.
/// Texts are borrowed and must outlive the index. Reading is thread-safe.
class TextIndex {
 public:
  /// Room for `n_texts` insertions.
  explicit TextIndex(std::size_t n_texts) : slots_(std::bit_ceil(2 * n_texts + 1)) {}

  /// Adds `text`, unless it is there already: then returns the id it has.
  std::optional<TokenId> insert(std::string_view text, TokenId id) {
    Slot& slot = slots_[position_of(text)];
    if (slot.text.data() != nullptr) {
      return slot.id;
    }
    slot = {text, id};
    return std::nullopt;
  }

  [[nodiscard]] std::optional<TokenId> find(std::string_view text) const {
    const Slot& slot = slots_[position_of(text)];
    return slot.text.data() != nullptr ? std::optional(slot.id) : std::nullopt;
  }

 private:
  struct Slot {
    std::string_view text;  // data() is null where the slot is free
    TokenId id{};
  };

  /// Where `text` is, or else the free slot where it belongs.
  [[nodiscard]] std::size_t position_of(std::string_view text) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t position = static_cast<std::size_t>(hash_(text)) & mask;
    while (slots_[position].text.data() != nullptr && slots_[position].text != text) {
      position = (position + 1) & mask;
    }
    return position;
  }

  SeededHash hash_;
  std::vector<Slot> slots_;
};

}  // namespace hearth::tokenizer
