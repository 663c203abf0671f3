#pragma once
/// The two ways in which a vocabulary says which neighbours merge, and in which order.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/merge_chain.h"
#include "tokenizer/pair_index.h"
#include "tokenizer/text_index.h"
#include "tokenizer/token_table.h"

namespace hearth::tokenizer {

/// A list of pairs, the earlier the sooner.
class RankedMerges {
 public:
  /// `merges` are "left right", split at the first space after the first byte.
  /// Errors: invalid_file for a merge that is not two parts, or of which a part or the whole is no
  /// token.
  static Result<RankedMerges> create(const TokenTable& tokens,
                                     std::span<const std::string_view> merges);

  [[nodiscard]] std::optional<Merge> propose(TokenId left, TokenId right) const {
    if (left == no_token || right == no_token) {
      return std::nullopt;
    }
    const std::optional<std::uint32_t> rank = ranks_.find(left, right);
    return rank ? std::optional(Merge{*rank, results_[*rank]}) : std::nullopt;
  }

 private:
  explicit RankedMerges(std::size_t n_merges) : ranks_(n_merges), results_(n_merges, no_token) {}

  PairIndex ranks_;
  std::vector<TokenId> results_;  // by rank
};

/// Any two neighbours whose joined text is a token, the higher its score the sooner.
class ScoredMerges {
 public:
  /// One finite score per token.
  explicit ScoredMerges(std::span<const float> scores);

  [[nodiscard]] std::optional<Merge> propose(const TextIndex& texts,
                                             std::string_view joined) const {
    const std::optional<TokenId> token = texts.find(joined);
    return token ? std::optional(Merge{priorities_[static_cast<std::size_t>(*token)], *token})
                 : std::nullopt;
  }

 private:
  std::vector<std::uint32_t> priorities_;  // by token; falls as the score rises
};

}  // namespace hearth::tokenizer
