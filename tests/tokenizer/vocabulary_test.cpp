/// Vocabularies that contradict themselves are refused, with a message that says where.

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/tokenizer/small_vocabulary.h"
#include "tokenizer/vocabulary_check.h"

namespace hearth::tokenizer {
namespace {

using testing::HasSubstr;

void expect_refused(const SmallVocabulary& small, std::string_view message) {
  const auto tokenizer = small.create();
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::invalid_file);
  EXPECT_THAT(tokenizer.error().message, HasSubstr(message));
}

TEST(Vocabulary, RefusesAnEmptyList) {
  expect_refused(SmallVocabulary(VocabularyKind::byte_pair), "tokens: the list is empty");
}

// Ideas 9, 10, 12, 13, 17 and 18 of the hostile files in docs/formats/gguf.md are among these.

TEST(Vocabulary, RefusesTwoTokensOfOneText) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  small.add("abc");
  small.add("abc");
  expect_refused(small, "tokens[256] and tokens[257] have the same text \"abc\"");
}

TEST(Vocabulary, RefusesMoreEntriesThanItCanHold) {
  SmallVocabulary tokens = SmallVocabulary::of_bytes();
  tokens.vocabulary.tokens.resize((1u << 20) + 1);
  expect_refused(tokens, "tokens: 1048577 entries");
  SmallVocabulary merges = SmallVocabulary::of_bytes();
  merges.vocabulary.merges.resize((1u << 21) + 1);
  expect_refused(merges, "merges: 2097153 entries");
}

TEST(Vocabulary, ManyTokensMayHaveNoText) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  small.add("", TokenType::unused);
  small.add("", TokenType::user_defined);
  small.add("");
  EXPECT_EQ(small.create().value().encode("ab").value(), bytes_as_tokens("ab"));
}

TEST(Vocabulary, RefusesByteTokensThatNameNoByte) {
  for (const std::string_view text : {"<0x-1>", "<0xZZ>", "<0x123>", "A", ""}) {
    SmallVocabulary small = SmallVocabulary::of_sentence_piece();
    small.add(std::string(text), TokenType::byte);
    expect_refused(small, "tokens[260]: a byte token must be");
  }
}

TEST(Vocabulary, RefusesATokenTextThatIsTooLong) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  small.add(std::string(max_token_bytes + 1, 'a'));
  expect_refused(small, "tokens[256]: a text of 8193 bytes");
}

TEST(Vocabulary, RefusesAnAddedTokenThatIsTooLongOrNotUtf8) {
  SmallVocabulary too_long = SmallVocabulary::of_bytes();
  too_long.add(std::string(AddedTokens::max_added_token_bytes + 1, 'a'), TokenType::control);
  expect_refused(too_long, "tokens[256]");

  SmallVocabulary not_utf8 = SmallVocabulary::of_bytes();
  not_utf8.add("\xa9", TokenType::user_defined);
  expect_refused(not_utf8, "tokens[256]: the added token");
}

TEST(Vocabulary, RefusesListsOfOtherLengths) {
  SmallVocabulary scores = SmallVocabulary::of_sentence_piece();
  scores.vocabulary.scores.pop_back();
  expect_refused(scores, "scores: 259 entries for 260 tokens");

  SmallVocabulary types = SmallVocabulary::of_bytes();
  types.vocabulary.types.push_back(1);
  expect_refused(types, "token_type: 257 entries for 256 tokens");

  SmallVocabulary no_scores = SmallVocabulary::of_sentence_piece();
  no_scores.vocabulary.scores.clear();
  expect_refused(no_scores, "scores: 0 entries for 260 tokens");
}

TEST(Vocabulary, RefusesTypesAndScoresThatAreNone) {
  SmallVocabulary type = SmallVocabulary::of_bytes();
  type.vocabulary.types[7] = 9;
  expect_refused(type, "token_type[7]: expected 0 to 6, found 9");

  SmallVocabulary score = SmallVocabulary::of_sentence_piece();
  score.vocabulary.scores[7] = std::nanf("");
  expect_refused(score, "scores[7]");
}

TEST(Vocabulary, RefusesSpecialTokensOutsideOfIt) {
  for (const SpecialTokenRole& role : special_token_roles) {
    for (const std::uint32_t id : {256u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
      SmallVocabulary small = SmallVocabulary::of_bytes();
      small.vocabulary.special.*role.id = static_cast<TokenId>(id);
      expect_refused(small, format("{}_token_id: {} is outside", role.name, id));
    }
  }
}

TEST(Vocabulary, RefusesSuppressedTokensOutsideOfIt) {
  for (const std::int32_t id : {-1, 256}) {
    SmallVocabulary small = SmallVocabulary::of_bytes();
    small.vocabulary.suppressed = {3, id};
    expect_refused(small, "suppress_tokens[1]");
  }
}

TEST(Vocabulary, RefusesMalformedMerges) {
  for (const std::string_view merge : {"", " ", "ab", "a ", " b", "a"}) {
    SmallVocabulary small = SmallVocabulary::of_bytes();
    small.vocabulary.merges = {merge};
    expect_refused(small, "merges[0]: expected two parts");
  }
  for (const std::string_view merge : {"a zz", "zz a", "a b", "a b c"}) {
    SmallVocabulary small = SmallVocabulary::of_bytes();
    small.vocabulary.merges = {merge};
    expect_refused(small, "which does not exist");
  }
}

TEST(Vocabulary, MessagesShowHostileTextHarmlessly) {
  EXPECT_EQ(in_quotes("a\x1b[2J\x7f\n"), "\"a\\x1b[2J\\x7f\\x0a\"");
  EXPECT_EQ(in_quotes("\u009b"), "\"\\x9b\"");
  EXPECT_EQ(in_quotes("\xff"), "\"\ufffd\"");
  EXPECT_LT(in_quotes(std::string(10'000, 'a')).size(), 100u);
}

}  // namespace
}  // namespace hearth::tokenizer
