#include "tokenizer/detokenizer.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/tokenizer/small_vocabulary.h"

namespace hearth::tokenizer {
namespace {

/// What each push gives, then what flush gives.
std::vector<std::string> push_all(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens,
                                  DetokenizerOptions options = {}) {
  Detokenizer detokenizer(tokenizer, options);
  std::vector<std::string> texts;
  for (const TokenId token : tokens) {
    texts.push_back(detokenizer.push(token));
  }
  texts.push_back(detokenizer.flush());
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Detokenizer, HoldsBackIncompleteCharacters) {
  const Tokenizer tokenizer = SmallVocabulary::of_bytes().create().value();
  EXPECT_EQ(push_all(tokenizer, bytes_as_tokens("a\u00e9z")), (Texts{"a", "", "é", "z", ""}));
  EXPECT_EQ(push_all(tokenizer, bytes_as_tokens("\U0001f999")), (Texts{"", "", "", "🦙", ""}));
}

TEST(Detokenizer, ReplacesEachIllFormedSubpartAtOnce) {
  const Tokenizer tokenizer = SmallVocabulary::of_bytes().create().value();
  EXPECT_EQ(push_all(tokenizer, bytes_as_tokens("\xff\x80z")),
            (Texts{"\ufffd", "\ufffd", "z", ""}));
  EXPECT_EQ(push_all(tokenizer, bytes_as_tokens("\xe2\x82z")), (Texts{"", "", "\ufffdz", ""}));
  EXPECT_EQ(push_all(tokenizer, bytes_as_tokens("\xf0\x9f\xe2\x82\xac")),
            (Texts{"", "", "\ufffd", "", "€", ""}));
  EXPECT_EQ(push_all(tokenizer, bytes_as_tokens("\xed\xa0\x80")),
            (Texts{"", "\ufffd\ufffd", "\ufffd", ""}));
}

TEST(Detokenizer, FlushReleasesWhatNeverBecameACharacter) {
  const Tokenizer tokenizer = SmallVocabulary::of_bytes().create().value();
  EXPECT_EQ(push_all(tokenizer, bytes_as_tokens("a\xe2\x82")), (Texts{"a", "", "", "\ufffd"}));
  Detokenizer detokenizer(tokenizer);
  detokenizer.push(TokenId{0xe2});
  EXPECT_EQ(detokenizer.n_held_back(), 1u);
  EXPECT_EQ(detokenizer.flush(), "\ufffd");
  EXPECT_EQ(detokenizer.push(TokenId{'a'}), "a");
}

TEST(Detokenizer, ControlTokensAppearOnlyWhenAskedFor) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  const TokenId control = small.add("<|x|>", TokenType::control);
  const TokenId user_defined = small.add("<think>", TokenType::user_defined);
  const Tokenizer tokenizer = small.create().value();
  const std::vector<TokenId> tokens{control, TokenId{'a'}, user_defined};
  EXPECT_EQ(detokenize(tokenizer, tokens), "a<think>");
  EXPECT_EQ(detokenize(tokenizer, tokens, {.show_control = true}), "<|x|>a<think>");
}

TEST(Detokenizer, TheSpaceInFrontIsTakenAwayOnceAndOnlyAtTheBeginningOfAText) {
  SmallVocabulary small = SmallVocabulary::of_sentence_piece();
  const TokenId word = small.add("\u2581a");
  const Tokenizer tokenizer = small.create().value();
  const TokenId bos{1};
  EXPECT_EQ(detokenize(tokenizer, std::vector{bos, word, word}), "a a");
  EXPECT_EQ(detokenize(tokenizer, std::vector{word, word}, {.at_text_start = false}), " a a");
  small.vocabulary.add_space_prefix = false;
  EXPECT_EQ(detokenize(small.create().value(), std::vector{word, word}), " a a");
}

TEST(Detokenizer, ByteTokensJoinIntoCharacters) {
  const Tokenizer tokenizer = SmallVocabulary::of_sentence_piece().create().value();
  const auto tokens = tokenizer.encode("é\n").value();
  EXPECT_EQ(push_all(tokenizer, tokens), (Texts{"", "", "é", "\n", ""}));
}

}  // namespace
}  // namespace hearth::tokenizer
