#pragma once
/// The merge loop that all byte-pair models share.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace hearth::tokenizer {

/// A part of the piece being encoded. `token` is no_token for a character outside the vocabulary.
struct Symbol {
  std::uint32_t begin = 0;   // byte offset in the piece
  std::uint32_t length = 0;  // bytes; 0 once the left neighbour has swallowed it
  TokenId token{};
  std::uint32_t previous = 0;
  std::uint32_t next = 0;
};

inline constexpr TokenId no_token{-1};

/// A merge that a rule allows: lower priority values go first.
struct Merge {
  std::uint32_t priority;
  TokenId token;
};

/// The symbols of one piece as a linked list, merged through a heap: O(n log n) for n symbols.
/// Reused from piece to piece so that its memory is allocated once. One thread at a time.
class MergeChain {
 public:
  void clear() { symbols_.clear(); }

  void append(std::uint32_t length, TokenId token) {
    const auto index = static_cast<std::uint32_t>(symbols_.size());
    std::uint32_t begin = 0;
    if (index > 0) {
      Symbol& last = symbols_.back();
      begin = last.begin + last.length;
      last.next = index;
    }
    symbols_.push_back({begin, length, token, index - 1, end});
  }

  /// Applies the merge of lowest priority value, the leftmost on ties, until none is left.
  /// `propose(left, right)` gives the merge of two neighbours as std::optional<Merge>.
  template <class Propose>
  void merge(const Propose& propose);

  /// Visits the symbols that are left, in order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Symbol& symbol : symbols_) {
      if (symbol.length > 0) {
        visit(symbol);
      }
    }
  }

 private:
  static constexpr std::uint32_t end = std::numeric_limits<std::uint32_t>::max();

  /// Ordered by priority, then by the position of the left symbol.
  struct Candidate {
    std::uint64_t order;
    std::uint32_t length;  // of the two symbols together: differs once one of them has changed
    TokenId token;

    [[nodiscard]] std::uint32_t left() const { return static_cast<std::uint32_t>(order); }
    bool operator>(const Candidate& other) const { return order > other.order; }
  };

  template <class Propose>
  std::optional<Candidate> candidate_at(std::uint32_t left, const Propose& propose) const;
  template <class Propose>
  void push_candidate(std::uint32_t left, const Propose& propose);
  void join(std::uint32_t left, TokenId token);

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;  // smallest on top
};

template <class Propose>
std::optional<MergeChain::Candidate> MergeChain::candidate_at(std::uint32_t left,
                                                              const Propose& propose) const {
  const Symbol& symbol = symbols_[left];
  if (symbol.next == end) {
    return std::nullopt;
  }
  const Symbol& next = symbols_[symbol.next];
  const std::optional<Merge> merge = propose(symbol, next);
  if (!merge) {
    return std::nullopt;
  }
  return Candidate{(std::uint64_t{merge->priority} << 32) | left, symbol.length + next.length,
                   merge->token};
}

template <class Propose>
void MergeChain::push_candidate(std::uint32_t left, const Propose& propose) {
  if (const auto candidate = candidate_at(left, propose)) {
    heap_.push_back(*candidate);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
}

inline void MergeChain::join(std::uint32_t left, TokenId token) {
  Symbol& symbol = symbols_[left];
  Symbol& swallowed = symbols_[symbol.next];
  symbol.length += swallowed.length;
  symbol.token = token;
  symbol.next = swallowed.next;
  if (symbol.next != end) {
    symbols_[symbol.next].previous = left;
  }
  swallowed.length = 0;
}

template <class Propose>
void MergeChain::merge(const Propose& propose) {
  heap_.clear();
  for (std::uint32_t left = 0; left < symbols_.size(); ++left) {
    if (const auto candidate = candidate_at(left, propose)) {
      heap_.push_back(*candidate);
    }
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>{});
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    const Candidate candidate = heap_.back();
    heap_.pop_back();
    const std::uint32_t left = candidate.left();
    const Symbol& symbol = symbols_[left];
    // A symbol only grows or disappears, so the candidate is out of date exactly when its length
    // is.
    if (symbol.length == 0 || symbol.next == end ||
        symbol.length + symbols_[symbol.next].length != candidate.length) {
      continue;
    }
    join(left, candidate.token);
    push_candidate(left, propose);
    if (left > 0 && symbol.previous != end) {
      push_candidate(symbol.previous, propose);
    }
  }
}

}  // namespace hearth::tokenizer
