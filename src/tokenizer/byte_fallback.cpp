#include "tokenizer/byte_fallback.h"

#include <algorithm>

#include "base/fail.h"
#include "tokenizer/vocabulary_check.h"

namespace hearth::tokenizer {

ByteFallback::ByteFallback(const TokenTable& tokens, std::optional<TokenId> unknown) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenId token = tokens.id(i);
    if (tokens.type(token) == TokenType::byte) {
      set(static_cast<std::uint8_t>(tokens.bytes(token).front()), token);
    }
  }
  if (unknown && tokens.type(*unknown) != TokenType::control) {
    unknown_ = unknown;
  }
}

Result<void> ByteFallback::encode(std::string_view text, std::vector<TokenId>& tokens) const {
  if (std::ranges::all_of(text, [&](char byte) { return find(byte).has_value(); })) {
    for (const char byte : text) {
      tokens.push_back(*find(byte));
    }
    return {};
  }
  if (!unknown_) {
    return fail(ErrorCode::invalid_argument,
                "the vocabulary has no token for {}, nor tokens for its bytes", in_quotes(text));
  }
  if (tokens.empty() || tokens.back() != *unknown_) {
    tokens.push_back(*unknown_);
  }
  return {};
}

}  // namespace hearth::tokenizer
