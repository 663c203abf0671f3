#include "tokenizer/token_table.h"

#include "base/fail.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/visible_spaces.h"
#include "tokenizer/vocabulary_check.h"

namespace hearth::tokenizer {
namespace {

bool has_literal_text(TokenType type) {
  return type == TokenType::control || type == TokenType::user_defined ||
         type == TokenType::unknown;
}

TokenType type_of(const Vocabulary& vocabulary, Spelling spelling, std::size_t index) {
  if (!vocabulary.types.empty()) {
    return static_cast<TokenType>(vocabulary.types[index]);
  }
  const bool may_have_byte_tokens = spelling != Spelling::byte_alphabet;
  return may_have_byte_tokens && parse_byte_token(vocabulary.tokens[index]) ? TokenType::byte
                                                                            : TokenType::normal;
}

/// The bytes of a token that is neither a byte token nor written literally.
std::string bytes_of(Spelling spelling, std::string_view text) {
  if (spelling == Spelling::byte_alphabet) {
    return decode_byte_alphabet(text).value_or(std::string(text));
  }
  return spelling == Spelling::visible_spaces ? hide_spaces(text) : std::string(text);
}

}  // namespace

TokenTable::Place TokenTable::keep(std::string_view text) {
  const Place place{characters_.size(), text.size()};
  characters_.insert(characters_.end(), text.begin(), text.end());
  return place;
}

Result<TokenTable> TokenTable::create(const Vocabulary& vocabulary, Spelling spelling) {
  const std::size_t n_tokens = vocabulary.tokens.size();
  TokenTable table(n_tokens);
  for (std::size_t i = 0; i < n_tokens; ++i) {
    const std::string_view text = vocabulary.tokens[i];
    const TokenType type = type_of(vocabulary, spelling, i);
    Entry entry{.text = table.keep(text), .bytes = {}, .type = type};
    entry.bytes = entry.text;
    if (type == TokenType::byte) {
      const std::optional<std::uint8_t> byte = parse_byte_token(text);
      if (!byte) {
        return fail(ErrorCode::invalid_file,
                    "tokens[{}]: a byte token must be \"<0x00>\" to \"<0xFF>\", found {}", i,
                    in_quotes(text));
      }
      const char character = static_cast<char>(*byte);
      entry.bytes = table.keep({&character, 1});
    } else if (!has_literal_text(type)) {
      entry.bytes = table.keep(bytes_of(spelling, text));
    }
    table.entries_.push_back(entry);
  }
  for (std::size_t i = 0; i < n_tokens; ++i) {
    const TokenId token = table.id(i);
    const std::string_view text = table.text(token);
    if (text.empty()) {  // an unused slot; there may be many
      continue;
    }
    if (const auto earlier = table.by_text_.insert(text, token)) {
      return fail(ErrorCode::invalid_file, "tokens[{}] and tokens[{}] have the same text {}",
                  static_cast<std::int32_t>(*earlier), i, in_quotes(text));
    }
  }
  return table;
}

}  // namespace hearth::tokenizer
