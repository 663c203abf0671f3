#include "tokenizer/sentence_piece_encoder.h"

#include <cstdint>
#include <string>
#include <utility>

#include "tokenizer/piece_encoder.h"
#include "tokenizer/visible_spaces.h"

namespace hearth::tokenizer {
namespace {

class SentencePieceEncoder : public TextEncoder {
 public:
  SentencePieceEncoder(PieceEncoder pieces, bool add_space_prefix, bool cuts_words)
      : pieces_(std::move(pieces)), add_space_prefix_(add_space_prefix), cuts_words_(cuts_words) {}

  Result<void> encode(std::string_view text, std::vector<TokenId>& tokens) const override {
    if (text.empty()) {
      return {};
    }
    std::string shown = show_spaces(text);
    if (add_space_prefix_) {
      shown.insert(0, visible_space);
    }
    MergeChain chain;
    if (!cuts_words_) {
      return pieces_.encode(shown, chain, tokens);
    }
    std::string_view rest = shown;
    for (const std::uint32_t length : word_lengths(shown)) {
      HEARTH_TRY(pieces_.encode(rest.substr(0, length), chain, tokens));
      rest.remove_prefix(length);
    }
    return {};
  }

 private:
  PieceEncoder pieces_;
  bool add_space_prefix_;
  bool cuts_words_;
};

}  // namespace

std::unique_ptr<TextEncoder> make_sentence_piece_encoder(const Vocabulary& vocabulary,
                                                         const TokenTable& tokens,
                                                         std::optional<TokenId> unknown,
                                                         bool add_space_prefix) {
  PieceEncoder pieces(tokens, ScoredMerges(vocabulary.scores),
                      {.spelling = Spelling::visible_spaces, .unknown = unknown});
  return std::make_unique<SentencePieceEncoder>(std::move(pieces), add_space_prefix,
                                                !has_token_across_words(tokens));
}

}  // namespace hearth::tokenizer
