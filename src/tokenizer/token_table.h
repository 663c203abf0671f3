#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/text_index.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// The tokens of a checked vocabulary: their texts as stored, the bytes they stand for, their
/// types. Move-only in practice; views stay valid when it moves. Reading is thread-safe.
class TokenTable {
 public:
  /// Copies the texts. Errors: invalid_file for two tokens of one text or a byte token whose text
  /// does not name a byte.
  static Result<TokenTable> create(const Vocabulary& vocabulary, Spelling spelling);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] TokenId id(std::size_t index) const { return static_cast<TokenId>(index); }
  [[nodiscard]] bool contains(TokenId token) const {
    return static_cast<std::int64_t>(token) >= 0 && static_cast<std::size_t>(token) < size();
  }

  /// As the vocabulary writes it: "Ġthe", "▁the", "<0x0A>", "<|im_end|>".
  [[nodiscard]] std::string_view text(TokenId token) const { return view(entry(token).text); }
  /// What it adds to a text: " the", "\n". Not always whole characters.
  [[nodiscard]] std::string_view bytes(TokenId token) const { return view(entry(token).bytes); }
  [[nodiscard]] TokenType type(TokenId token) const { return entry(token).type; }
  /// For tokens that a file forgot to mark.
  void set_type(TokenId token, TokenType type) {
    entries_[static_cast<std::size_t>(token)].type = type;
  }

  /// The token whose stored text this is.
  [[nodiscard]] std::optional<TokenId> find(std::string_view text) const {
    return by_text_.find(text);
  }

 private:
  struct Place {
    std::size_t begin = 0;
    std::size_t length = 0;
  };
  struct Entry {
    Place text;
    Place bytes;
    TokenType type{};
  };

  explicit TokenTable(std::size_t n_tokens) : by_text_(n_tokens) { entries_.reserve(n_tokens); }

  [[nodiscard]] const Entry& entry(TokenId token) const {
    return entries_[static_cast<std::size_t>(token)];
  }
  [[nodiscard]] std::string_view view(Place place) const {
    return {characters_.data() + place.begin, place.length};
  }
  Place keep(std::string_view text);

  std::vector<char> characters_;  // a vector, because views into it must survive a move
  std::vector<Entry> entries_;
  TextIndex by_text_;
};

}  // namespace hearth::tokenizer
