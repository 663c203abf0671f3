#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token_id.h"

namespace hearth::tokenizer {

/// Which of many texts a longer text begins with: a sorted list, narrowed byte by byte.
/// Texts are borrowed, distinct and not empty. Reading is thread-safe.
class PrefixIndex {
 public:
  struct Entry {
    std::string_view text;
    TokenId token;
  };

  explicit PrefixIndex(std::vector<Entry> entries) : sorted_(std::move(entries)) {
    std::ranges::sort(sorted_, {}, &Entry::text);
    for (std::size_t byte = 0; byte < by_first_byte_.size(); ++byte) {
      by_first_byte_[byte] = narrow(sorted_, 0, static_cast<char>(byte));
    }
  }
  PrefixIndex(PrefixIndex&&) noexcept =
      default;  // the ranges survive, as vectors keep their memory
  PrefixIndex& operator=(PrefixIndex&&) noexcept = default;

  /// Calls `visit(entry)` for each entry that `text` begins with, the shortest first.
  template <class Visit>
  void for_each_prefix(std::string_view text, const Visit& visit) const {
    if (text.empty()) {
      return;
    }
    std::span<const Entry> candidates = by_first_byte_[static_cast<unsigned char>(text.front())];
    for (std::size_t length = 1; !candidates.empty(); ++length) {
      if (candidates.front().text.size() == length) {
        visit(candidates.front());
      }
      if (length == text.size()) {
        return;
      }
      candidates = narrow(candidates, length, text[length]);
    }
  }

 private:
  /// `candidates` share their first `depth` bytes; keeps those whose next byte is `byte`.
  static std::span<const Entry> narrow(std::span<const Entry> candidates, std::size_t depth,
                                       char byte) {
    if (!candidates.empty() && candidates.front().text.size() == depth) {
      candidates = candidates.subspan(1);
    }
    const auto byte_of = [depth](const Entry& entry) {
      return static_cast<unsigned char>(entry.text[depth]);
    };
    const auto wanted = static_cast<unsigned char>(byte);
    // When the outermost two agree, so do all between them: nested texts need no binary search.
    if (candidates.empty() ||
        (byte_of(candidates.front()) == wanted && byte_of(candidates.back()) == wanted)) {
      return candidates;
    }
    const auto range = std::ranges::equal_range(candidates, wanted, {}, byte_of);
    return {range.begin(), range.end()};
  }

  std::vector<Entry> sorted_;  // by text, bytes compared as unsigned
  std::array<std::span<const Entry>, 256> by_first_byte_{};
};

}  // namespace hearth::tokenizer
