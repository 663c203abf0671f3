#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/token_table.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// What stands for a piece of text that no token covers: a token per byte, or the unknown token.
class ByteFallback {
 public:
  /// Uses the tokens of type byte, and `unknown` unless that is a control token, which plain text
  /// must never produce.
  ByteFallback(const TokenTable& tokens, std::optional<TokenId> unknown);

  /// Takes `token` for `byte` as well, for vocabularies whose bytes are ordinary tokens.
  void set(std::uint8_t byte, TokenId token) { tokens_[byte] = token; }

  /// The token for one byte, if there is one.
  [[nodiscard]] std::optional<TokenId> find(char byte) const {
    return tokens_[static_cast<unsigned char>(byte)];
  }

  /// Appends tokens for `text`: its bytes if each has a token, else one unknown token (none when
  /// the last token is unknown already). Errors: invalid_argument when there is neither.
  Result<void> encode(std::string_view text, std::vector<TokenId>& tokens) const;

 private:
  std::array<std::optional<TokenId>, 256> tokens_{};
  std::optional<TokenId> unknown_;
};

}  // namespace hearth::tokenizer
