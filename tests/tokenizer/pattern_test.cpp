#include "tokenizer/pattern.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::tokenizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint32_t> cut(std::string_view expression, std::string_view text,
                               std::vector<std::uint32_t> lengths = {}) {
  if (lengths.empty()) {
    lengths.push_back(static_cast<std::uint32_t>(text.size()));
  }
  return Pattern::create(expression).value().cut(text, lengths).value();
}

TEST(Pattern, MatchesAndGapsBecomePieces) {
  EXPECT_THAT(cut("[0-9]+", "ab12cd345"), ElementsAre(2, 2, 2, 3));
  EXPECT_THAT(cut("x", "abc"), ElementsAre(3));
  EXPECT_THAT(cut("a", "aa"), ElementsAre(1, 1));
}

TEST(Pattern, PiecesAreMatchedAlone) {
  EXPECT_THAT(cut("[0-9]+", "1234", {2, 2}), ElementsAre(2, 2));
  EXPECT_THAT(cut("(?<=a)b", "ab", {1, 1}), ElementsAre(1, 1));
  EXPECT_THAT(cut("(?<=a)b|c", "abc", {1, 2}), ElementsAre(1, 1, 1));
}

TEST(Pattern, EmptyMatchesCutNothing) {
  EXPECT_THAT(cut("x*", "aéb"), ElementsAre(4));
  EXPECT_THAT(cut("x*", "axxb"), ElementsAre(1, 2, 1));
}

TEST(Pattern, WhiteSpaceIsThatOfUnicode) {
  for (const std::string_view space :
       {"\t", "\n", "\v", "\f", "\r", " ", "\u0085", "\u00a0", "\u1680", "\u2000", "\u200a",
        "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"}) {
    EXPECT_THAT(cut(R"(\s)", "a" + std::string(space)), ElementsAre(1, space.size()));
    EXPECT_THAT(cut(R"([^\sb]+)", "a" + std::string(space)), ElementsAre(1, space.size()));
    EXPECT_THAT(cut(R"(\S+)", "a" + std::string(space)), ElementsAre(1, space.size()));
  }
  for (const std::string_view other : {"\u180e", "\u200b", "\u2060", "\ufeff", "\x1c"}) {
    EXPECT_THAT(cut(R"(\s)", "a" + std::string(other)), ElementsAre(1 + other.size()));
  }
}

TEST(Pattern, IgnoringCaseIsThatOfUnicode) {
  EXPECT_THAT(cut("(?i:'s)", "a'\u017f"), ElementsAre(1, 3));
  EXPECT_THAT(cut("(?i:k)", "a\u212a"), ElementsAre(1, 3));
}

TEST(Pattern, AMalformedExpressionIsAnError) {
  const auto pattern = Pattern::create("[a-");
  ASSERT_FALSE(pattern);
  EXPECT_EQ(pattern.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(pattern.error().message, HasSubstr("[a-"));
}

TEST(Pattern, AnExplodingMatchIsAnErrorInsteadOfAHang) {
  const Pattern pattern = Pattern::create("(?:a|aa|aaa)+$").value();
  const std::string text = std::string(100, 'a') + "b";
  const std::vector<std::uint32_t> whole{static_cast<std::uint32_t>(text.size())};
  const auto pieces = pattern.cut(text, whole);
  ASSERT_FALSE(pieces);
  EXPECT_EQ(pieces.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(pieces.error().message, HasSubstr("101 bytes"));
}

}  // namespace
}  // namespace hearth::tokenizer
