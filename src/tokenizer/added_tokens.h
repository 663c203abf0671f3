#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/prefix_index.h"
#include "tokenizer/token_table.h"

namespace hearth::tokenizer {

/// Finds the tokens that stand for themselves in a text, whatever the model would make of it:
/// control tokens, unknown, and user-defined ones. Their texts are bounded, so a search is linear
/// in the text. Borrows from the token table. Reading is thread-safe.
class AddedTokens {
 public:
  static constexpr std::size_t max_added_token_bytes = 512;

  struct Match {
    TokenId token;
    std::size_t length;  // bytes
  };

  /// Errors: invalid_file for an added token that is longer than the limit.
  static Result<AddedTokens> create(const TokenTable& tokens);

  /// The longest added token at the beginning of `text`. Control tokens (and unknown) count only
  /// when they end within the first `trusted_length` bytes.
  [[nodiscard]] std::optional<Match> match(std::string_view text, std::size_t trusted_length) const;

 private:
  AddedTokens(PrefixIndex anywhere, PrefixIndex in_trusted_text)
      : anywhere_(std::move(anywhere)), in_trusted_text_(std::move(in_trusted_text)) {}

  PrefixIndex anywhere_;         // user-defined
  PrefixIndex in_trusted_text_;  // control and unknown
};

}  // namespace hearth::tokenizer
