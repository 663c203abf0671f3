#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace hearth::tokenizer {

/// The model of a vocabulary: turns plain text, which holds no added tokens, into tokens.
/// Thread-safe.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  /// Appends the tokens of `text`, which is valid UTF-8 and less than 2 GiB long. It stands at the
  /// beginning of the whole text or right after an added token.
  /// Errors: invalid_argument when a character cannot be expressed in this vocabulary, or when a
  /// pre-tokenizer pattern needs more steps than allowed.
  virtual Result<void> encode(std::string_view text, std::vector<TokenId>& tokens) const = 0;
};

}  // namespace hearth::tokenizer
