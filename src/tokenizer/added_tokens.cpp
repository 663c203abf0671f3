#include "tokenizer/added_tokens.h"

#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "tokenizer/vocabulary_check.h"

namespace hearth::tokenizer {

Result<AddedTokens> AddedTokens::create(const TokenTable& tokens) {
  std::vector<PrefixIndex::Entry> anywhere;
  std::vector<PrefixIndex::Entry> in_trusted_text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenId token = tokens.id(i);
    const std::string_view text = tokens.text(token);
    const TokenType type = tokens.type(token);
    const bool needs_trust = type == TokenType::control || type == TokenType::unknown;
    if (text.empty() || (type != TokenType::user_defined && !needs_trust)) {
      continue;
    }
    if (text.size() > max_added_token_bytes) {
      return fail(ErrorCode::invalid_file,
                  "tokens[{}]: {} is an added token of {} bytes, at most {} are allowed", i,
                  in_quotes(text), text.size(), max_added_token_bytes);
    }
    // Cutting out anything else would leave text that is no longer UTF-8.
    if (!is_valid_utf8(text)) {
      return fail(ErrorCode::invalid_file, "tokens[{}]: the added token {} is not valid UTF-8", i,
                  in_quotes(text));
    }
    (needs_trust ? in_trusted_text : anywhere).push_back({text, token});
  }
  return AddedTokens(PrefixIndex(std::move(anywhere)), PrefixIndex(std::move(in_trusted_text)));
}

std::optional<AddedTokens::Match> AddedTokens::match(std::string_view text,
                                                     std::size_t trusted_length) const {
  std::optional<Match> longest;
  const auto keep_longest = [&longest](const PrefixIndex::Entry& entry) {
    if (!longest || entry.text.size() > longest->length) {
      longest = Match{entry.token, entry.text.size()};
    }
  };
  anywhere_.for_each_prefix(text, keep_longest);
  in_trusted_text_.for_each_prefix(text.substr(0, trusted_length), keep_longest);
  return longest;
}

}  // namespace hearth::tokenizer
