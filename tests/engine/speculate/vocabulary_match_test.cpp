#include "engine/speculate/vocabulary_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::engine {
namespace {

using testing::HasSubstr;

tokenizer::Tokenizer tokenizer_of(std::vector<std::string_view> tokens,
                                  std::vector<std::int32_t> types) {
  return *tokenizer::Tokenizer::create({.kind = tokenizer::VocabularyKind::byte_pair,
                                        .pre = "gpt-2",
                                        .tokens = std::move(tokens),
                                        .types = std::move(types)});
}

std::string refusal(const tokenizer::Tokenizer& model, const tokenizer::Tokenizer& draft) {
  const auto match = check_same_vocabulary({"big", model}, {"small", draft});
  return match ? "" : match.error().message;
}

TEST(VocabularyMatch, AcceptsTheSameTokens) {
  const auto tokens = tokenizer_of({"a", "b", "<end>"}, {1, 1, 3});
  EXPECT_EQ(refusal(tokens, tokenizer_of({"a", "b", "<end>"}, {1, 1, 3})), "");
}

TEST(VocabularyMatch, NamesTheFirstTokenThatDiffers) {
  const auto tokens = tokenizer_of({"a", "b", "c"}, {1, 1, 1});
  EXPECT_EQ(refusal(tokens, tokenizer_of({"a", "x", "y"}, {1, 1, 1})),
            "small cannot draft for big: token 1 is 'x', expected 'b'");
}

TEST(VocabularyMatch, NamesBothSizes) {
  const auto tokens = tokenizer_of({"a", "b", "c"}, {1, 1, 1});
  EXPECT_EQ(refusal(tokens, tokenizer_of({"a", "b"}, {1, 1})),
            "small cannot draft for big: it has 2 tokens, expected 3");
}

TEST(VocabularyMatch, AControlTokenMustBeOneInBoth) {
  const auto tokens = tokenizer_of({"a", "<end>"}, {1, 3});
  EXPECT_THAT(refusal(tokens, tokenizer_of({"a", "<end>"}, {1, 1})),
              HasSubstr("token 1 ('<end>') is a control token in one of them only"));
}

}  // namespace
}  // namespace hearth::engine
