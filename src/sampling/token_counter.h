#pragma once
/// Counts how often tokens occur in a span: linear in the span, whatever the vocabulary's size.

#include <cstddef>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace hearth::sampling {

class TokenCounter {
 public:
  explicit TokenCounter(std::size_t n_vocab) : counts_(n_vocab) { distinct_.reserve(n_vocab); }

  /// Forgets the last span and counts this one. Ids outside the vocabulary (image slots) are left
  /// out.
  void count(std::span<const TokenId> tokens);

  /// The distinct tokens of the last span, in order of first occurrence.
  [[nodiscard]] std::span<const TokenId> distinct() const { return distinct_; }

  /// Occurrences of a token of distinct().
  [[nodiscard]] int occurrences(TokenId token) const {
    return counts_[static_cast<std::size_t>(token)];
  }

 private:
  std::vector<int> counts_;  // indexed by token id; all zero except for distinct_
  std::vector<TokenId> distinct_;
};

}  // namespace hearth::sampling
