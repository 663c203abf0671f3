#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/tokenizer.h"

namespace hearth::tokenizer {

/// Builds vocabularies for tests, token by token, and owns their texts.
class SmallVocabulary {
 public:
  explicit SmallVocabulary(VocabularyKind kind, std::string_view pre = "") {
    vocabulary.kind = kind;
    vocabulary.pre = pre;
  }

  /// 256 tokens, one per byte, in the byte alphabet; token i stands for byte i.
  static SmallVocabulary of_bytes(std::string_view pre = "gpt-2") {
    SmallVocabulary small(VocabularyKind::byte_pair, pre);
    for (int byte = 0; byte < 256; ++byte) {
      std::string text;
      append_utf8(text, byte_alphabet_character(static_cast<std::uint8_t>(byte)));
      small.add(text);
    }
    return small;
  }

  /// Unknown, begin and end tokens, 256 byte tokens and U+2581; scores are zero.
  static SmallVocabulary of_sentence_piece(VocabularyKind kind = VocabularyKind::sentence_piece) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    SmallVocabulary small(kind);
    small.add("<unk>", TokenType::unknown);
    small.add("<s>", TokenType::control);
    small.add("</s>", TokenType::control);
    for (std::size_t byte = 0; byte < 256; ++byte) {
      small.add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", TokenType::byte);
    }
    small.add("\u2581");
    return small;
  }

  TokenId add(std::string text, TokenType type = TokenType::normal, float score = 0) {
    vocabulary.tokens.push_back(texts_.emplace_back(std::move(text)));
    vocabulary.types.push_back(static_cast<std::int32_t>(type));
    vocabulary.scores.push_back(score);
    return static_cast<TokenId>(vocabulary.tokens.size() - 1);
  }

  /// Adds the merge and the token that it makes.
  TokenId merge(std::string_view left, std::string_view right) {
    merge_existing(left, right);
    return add(std::string(left) + std::string(right));
  }

  void merge_existing(std::string_view left, std::string_view right) {
    vocabulary.merges.push_back(texts_.emplace_back(std::string(left) + " " + std::string(right)));
  }

  [[nodiscard]] Result<Tokenizer> create() const { return Tokenizer::create(vocabulary); }

  Vocabulary vocabulary;

 private:
  std::deque<std::string> texts_;  // a deque, because the vocabulary borrows from it
};

/// The tokens whose ids are the bytes of `text`: what a vocabulary of_bytes() makes without merges.
inline std::vector<TokenId> bytes_as_tokens(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char c : text) {
    tokens.push_back(static_cast<TokenId>(static_cast<unsigned char>(c)));
  }
  return tokens;
}

}  // namespace hearth::tokenizer
