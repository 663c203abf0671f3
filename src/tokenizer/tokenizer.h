#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text_part.h"
#include "base/token_id.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/text_encoder.h"
#include "tokenizer/token_table.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// Text to tokens and what there is to know about a token; Detokenizer goes the other way.
/// Move-only. All const members are thread-safe.
class Tokenizer {
 public:
  /// Checks everything and copies what it needs.
  /// Errors: invalid_file for a vocabulary that contradicts itself, naming the list and the
  /// position; unsupported for a pre-tokenizer that nothing here implements.
  static Result<Tokenizer> create(const Vocabulary& vocabulary);

  /// Puts the begin, end and separator tokens around the text where the vocabulary wants them; a
  /// text that already begins or ends with the right token does not get a second one. Chat
  /// templates print them themselves.
  enum class Frame { add, none };

  /// The tokens of the parts joined. Control tokens come only from texts that lie in trusted parts
  /// (or go across several trusted neighbours); user-defined tokens come from anywhere; the longest
  /// at the leftmost place wins. Between them, text is encoded as if there were no parts, in NFC
  /// where the vocabulary wants that.
  /// Invalid UTF-8 becomes U+FFFD, part by part.
  /// Errors: invalid_argument for 2 GiB of text or more, or text that the vocabulary cannot
  /// express.
  [[nodiscard]] Result<std::vector<TokenId>> encode(std::span<const TextPart> parts,
                                                    Frame frame = Frame::none) const;

  /// The tokens of text that may not become control tokens.
  [[nodiscard]] Result<std::vector<TokenId>> encode(std::string_view user_text,
                                                    Frame frame = Frame::none) const;

  [[nodiscard]] std::size_t n_tokens() const { return tokens_->size(); }
  [[nodiscard]] bool contains(TokenId token) const { return tokens_->contains(token); }

  /// As the vocabulary writes it. For these four, the token must be in the vocabulary.
  [[nodiscard]] std::string_view token_text(TokenId token) const { return tokens_->text(token); }
  /// What it adds to a text, not always whole characters; of a control token, its text.
  [[nodiscard]] std::string_view token_bytes(TokenId token) const { return tokens_->bytes(token); }
  [[nodiscard]] TokenType type(TokenId token) const { return tokens_->type(token); }
  /// Control and unknown tokens: only trusted text yields them and answers do not show them.
  [[nodiscard]] bool is_control(TokenId token) const;

  /// The token whose text in the vocabulary is `text`: "<|im_end|>".
  [[nodiscard]] std::optional<TokenId> find(std::string_view text) const {
    return tokens_->find(text);
  }

  [[nodiscard]] const SpecialTokens& special() const { return special_; }
  /// Whether generation stops after this token.
  [[nodiscard]] bool is_end_of_generation(TokenId token) const;
  /// In increasing order.
  [[nodiscard]] std::span<const TokenId> end_of_generation() const { return end_of_generation_; }
  /// Tokens that sampling must never choose.
  [[nodiscard]] std::span<const TokenId> suppressed() const { return suppressed_; }

  [[nodiscard]] bool adds_bos() const { return adds_bos_; }
  [[nodiscard]] bool adds_eos() const { return adds_eos_; }
  /// Whether encoding puts a space before the text, which decoding takes away again.
  [[nodiscard]] bool adds_space_prefix() const { return adds_space_prefix_; }

 private:
  Tokenizer(std::unique_ptr<TokenTable> tokens, AddedTokens added);

  [[nodiscard]] Result<void> encode_plain(std::string_view text,
                                          std::vector<TokenId>& tokens) const;
  void put_in_frame(std::vector<TokenId>& tokens) const;

  std::unique_ptr<TokenTable> tokens_;  // at a fixed place, because the others borrow from it
  AddedTokens added_;
  std::unique_ptr<TextEncoder> encoder_;
  SpecialTokens special_;
  std::vector<TokenId> end_of_generation_;
  std::vector<TokenId> suppressed_;
  bool adds_bos_ = false;
  bool adds_eos_ = false;
  bool adds_separator_ = false;
  bool adds_space_prefix_ = false;
  bool normalizes_nfc_ = false;
};

}  // namespace hearth::tokenizer
