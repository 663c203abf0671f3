#include "engine/text_stream.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace hearth::engine {
namespace {

using tokenizer::Tokenizer;
using tokenizer::TokenType;

/// A vocabulary in which every byte is a token, and a few longer pieces and a control token follow.
class TextStreamTest : public testing::Test {
 protected:
  TextStreamTest() {
    for (int byte = 0; byte < 256; ++byte) {
      texts_.push_back(format("<0x{:02X}>", byte));
      types_.push_back(static_cast<std::int32_t>(TokenType::byte));
    }
    for (const char* piece : {"ab", "bc", "END", "_OF", "\u2581x"}) {
      texts_.emplace_back(piece);
      types_.push_back(static_cast<std::int32_t>(TokenType::normal));
    }
    texts_.emplace_back("<end>");
    types_.push_back(static_cast<std::int32_t>(TokenType::control));
    texts_.emplace_back("<unk>");
    types_.push_back(static_cast<std::int32_t>(TokenType::unknown));
    tokenizer::Vocabulary vocabulary;
    vocabulary.kind = tokenizer::VocabularyKind::sentence_piece;
    vocabulary.tokens.assign(texts_.begin(), texts_.end());
    vocabulary.types = types_;
    vocabulary.scores.assign(texts_.size(), 0.0F);
    vocabulary.special.unknown = TokenId{static_cast<std::int32_t>(texts_.size()) - 1};
    vocabulary.special.eos = TokenId{static_cast<std::int32_t>(texts_.size()) - 2};
    auto created = Tokenizer::create(vocabulary);
    if (!created) {
      ADD_FAILURE() << created.error().message;
      std::abort();
    }
    tokenizer_ = std::make_unique<Tokenizer>(std::move(*created));
  }

  [[nodiscard]] TokenId piece(std::string_view text) const { return *tokenizer_->find(text); }

  static std::vector<TokenId> bytes(std::string_view text) {
    std::vector<TokenId> tokens;
    for (const char byte : text) {
      tokens.push_back(TokenId{static_cast<unsigned char>(byte)});
    }
    return tokens;
  }

  /// What comes out for each token, and at the end.
  static std::vector<std::string> outputs(TextStream& stream, const std::vector<TokenId>& tokens) {
    std::vector<std::string> texts;
    for (const auto token : tokens) {
      texts.push_back(stream.push(token));
    }
    texts.push_back(stream.finish());
    return texts;
  }

  static std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const auto& text : texts) {
      all += text;
    }
    return all;
  }

  std::vector<std::string> texts_;
  std::vector<std::int32_t> types_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(TextStreamTest, GivesEveryTokenAtOnceWithoutStops) {
  TextStream stream(*tokenizer_, {});
  EXPECT_EQ(outputs(stream, bytes("hi")), (std::vector<std::string>{"h", "i", ""}));
  EXPECT_FALSE(stream.stop());
}

TEST_F(TextStreamTest, HoldsBackACharacterUntilItIsComplete) {
  TextStream stream(*tokenizer_, {});
  EXPECT_EQ(outputs(stream, bytes("\u00E9!")), (std::vector<std::string>{"", "\u00E9", "!", ""}));
}

TEST_F(TextStreamTest, EndsAnIncompleteCharacterAsReplacement) {
  TextStream stream(*tokenizer_, {});
  EXPECT_EQ(outputs(stream, bytes("a\xE2\x82")), (std::vector<std::string>{"a", "", "", "\uFFFD"}));
}

TEST_F(TextStreamTest, CutsBeforeAStopStringThatSpansTokens) {
  TextStream stream(*tokenizer_, {"END_OF"});
  EXPECT_EQ(stream.push(piece("ab")), "ab");
  EXPECT_EQ(stream.push(piece("END")), "");
  EXPECT_EQ(stream.push(piece("_OF")), "");
  EXPECT_EQ(stream.stop(), "END_OF");
  EXPECT_EQ(stream.push(piece("ab")), "") << "nothing follows a stop string";
  EXPECT_EQ(stream.finish(), "");
}

TEST_F(TextStreamTest, ReleasesTextThatOnlyBeganLikeAStop) {
  TextStream stream(*tokenizer_, {"END_OF"});
  EXPECT_EQ(stream.push(piece("END")), "");
  EXPECT_EQ(stream.push(piece("ab")), "ENDab");
  EXPECT_FALSE(stream.stop());
}

TEST_F(TextStreamTest, ReleasesHeldTextAtTheEnd) {
  TextStream stream(*tokenizer_, {"END_OF"});
  EXPECT_EQ(joined(outputs(stream, {piece("ab"), piece("END")})), "abEND");
  EXPECT_FALSE(stream.stop());
}

TEST_F(TextStreamTest, FindsAStopThatBeginsInsideTheRestOfAFailedOne) {
  TextStream stream(*tokenizer_, {"aab"});
  EXPECT_EQ(joined(outputs(stream, bytes("xaaabz"))), "xa");
  EXPECT_EQ(stream.stop(), "aab");
}

TEST_F(TextStreamTest, LetsTheStopThatBeginsFirstWin) {
  TextStream stream(*tokenizer_, {"bc", "abcd"});
  EXPECT_EQ(joined(outputs(stream, bytes("xabcd"))), "x");
  EXPECT_EQ(stream.stop(), "abcd");
}

TEST_F(TextStreamTest, FallsBackToTheLaterStopWhenTheEarlierOneFails) {
  TextStream stream(*tokenizer_, {"bc", "abcd"});
  EXPECT_EQ(joined(outputs(stream, bytes("xabcx"))), "xa");
  EXPECT_EQ(stream.stop(), "bc");
}

TEST_F(TextStreamTest, FindsTheLaterStopAtTheEndOfTheAnswer) {
  TextStream stream(*tokenizer_, {"bc", "abcd"});
  EXPECT_EQ(joined(outputs(stream, bytes("xabc"))), "xa");
  EXPECT_EQ(stream.stop(), "bc");
}

TEST_F(TextStreamTest, CutsTheSameHoweverTokensSplitTheText) {
  const std::vector<std::vector<TokenId>> splits{
      bytes("abcEND_OF"),
      {piece("ab"), bytes("c")[0], piece("END"), piece("_OF")},
      {bytes("a")[0], piece("bc"), piece("END"), piece("_OF")},
  };
  for (const auto& tokens : splits) {
    TextStream stream(*tokenizer_, {"cE", "bcEN", "_"});
    EXPECT_EQ(joined(outputs(stream, tokens)), "a");
    EXPECT_EQ(stream.stop(), "bcEN");
  }
}

TEST_F(TextStreamTest, StopsAtAControlTokenNamedAsAStop) {
  TextStream stream(*tokenizer_, {"<end>", "abX"});
  EXPECT_EQ(stream.push(piece("ab")), "");
  EXPECT_EQ(stream.push(piece("<end>")), "ab");
  EXPECT_EQ(stream.stop(), "<end>");
}

TEST_F(TextStreamTest, ShowsNothingForOtherControlTokens) {
  TextStream stream(*tokenizer_, {});
  EXPECT_EQ(stream.push(piece("<end>")), "");
  EXPECT_FALSE(stream.stop());
}

TEST_F(TextStreamTest, KeepsTheSpaceOfAnAnswerThatContinuesAText) {
  TextStream start(*tokenizer_, {}, {.at_text_start = true});
  TextStream middle(*tokenizer_, {}, {.at_text_start = false});
  EXPECT_EQ(start.push(piece("\u2581x")), "x");
  EXPECT_EQ(middle.push(piece("\u2581x")), " x");
}

}  // namespace
}  // namespace hearth::engine
