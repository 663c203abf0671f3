#include "tokenizer/byte_pair_encoder.h"

#include <cstdint>
#include <string>
#include <utility>

#include "tokenizer/piece_encoder.h"
#include "tokenizer/pre_split.h"
#include "tokenizer/visible_spaces.h"

namespace hearth::tokenizer {
namespace {

class BytePairEncoder : public TextEncoder {
 public:
  BytePairEncoder(PreSplit pre_split, Spelling spelling, PieceEncoder pieces)
      : pre_split_(std::move(pre_split)), spelling_(spelling), pieces_(std::move(pieces)) {}

  Result<void> encode(std::string_view text, std::vector<TokenId>& tokens) const override {
    if (spelling_ == Spelling::visible_spaces) {
      return encode_pieces(show_spaces(text), tokens);
    }
    return encode_pieces(text, tokens);
  }

 private:
  Result<void> encode_pieces(std::string_view text, std::vector<TokenId>& tokens) const {
    HEARTH_ASSIGN(const std::vector<std::uint32_t> lengths, pre_split_.split(text));
    MergeChain chain;
    for (const std::uint32_t length : lengths) {
      HEARTH_TRY(pieces_.encode(text.substr(0, length), chain, tokens));
      text.remove_prefix(length);
    }
    return {};
  }

  PreSplit pre_split_;
  Spelling spelling_;
  PieceEncoder pieces_;
};

}  // namespace

Result<std::unique_ptr<TextEncoder>> make_byte_pair_encoder(const Vocabulary& vocabulary,
                                                            const TokenTable& tokens,
                                                            std::optional<TokenId> unknown) {
  HEARTH_ASSIGN(const PreTokenizer* rule, find_pre_tokenizer(vocabulary.pre));
  HEARTH_ASSIGN(PreSplit pre_split, PreSplit::create(*rule));
  HEARTH_ASSIGN(RankedMerges merges, RankedMerges::create(tokens, vocabulary.merges));
  const PieceEncoder::Options options{
      .spelling = rule->spelling, .ignore_merges = rule->ignore_merges, .unknown = unknown};
  return std::make_unique<BytePairEncoder>(std::move(pre_split), rule->spelling,
                                           PieceEncoder(tokens, std::move(merges), options));
}

}  // namespace hearth::tokenizer
