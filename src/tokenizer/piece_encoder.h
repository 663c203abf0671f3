#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/byte_fallback.h"
#include "tokenizer/merge_chain.h"
#include "tokenizer/merge_rules.h"
#include "tokenizer/text_index.h"
#include "tokenizer/token_table.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// Merges the symbols of one piece until nothing merges. The symbols are bytes where the vocabulary
/// spells bytes, else UTF-8 characters. Borrows from the token table. Thread-safe.
class PieceEncoder {
 public:
  using Rules = std::variant<RankedMerges, ScoredMerges>;

  struct Options {
    Spelling spelling = Spelling::byte_alphabet;  // of the tokens, and of pieces unless bytes
    bool ignore_merges = false;  // a piece that is a token becomes that token, merges or not
    std::optional<TokenId> unknown;
  };

  PieceEncoder(const TokenTable& tokens, Rules rules, const Options& options);

  /// Appends the tokens of `piece`. `chain` is scratch memory.
  /// Errors: those of ByteFallback::encode.
  Result<void> encode(std::string_view piece, MergeChain& chain,
                      std::vector<TokenId>& tokens) const;

 private:
  /// Whether merging the text of a token gives that token: found out when it first occurs.
  enum class Wholeness : std::uint8_t { not_known, whole, parts };

  [[nodiscard]] bool is_over_bytes() const { return options_.spelling == Spelling::byte_alphabet; }
  void add_bytes(const TokenTable& tokens, TokenId token);
  void merge(std::string_view piece, MergeChain& chain) const;
  void append_symbols(std::string_view piece, MergeChain& chain) const;
  bool is_whole(std::string_view piece, TokenId token, MergeChain& chain) const;

  Options options_;
  Rules rules_;
  TextIndex texts_;
  ByteFallback fallback_;
  // Most pieces of a text are whole tokens: this spares them the merging. Threads may find out the
  // same thing twice, which does no harm.
  mutable std::vector<std::atomic<Wholeness>> wholeness_;  // by token
};

}  // namespace hearth::tokenizer
