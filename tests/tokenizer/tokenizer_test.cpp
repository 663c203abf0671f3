#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tokenizer/small_vocabulary.h"

namespace hearth::tokenizer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<TokenId> encode(const Tokenizer& tokenizer, std::vector<TextPart> parts) {
  return tokenizer.encode(parts).value();
}

TextPart trusted(std::string_view text) {
  return {.text = std::string(text), .trusted = true};
}
TextPart user(std::string_view text) {
  return {.text = std::string(text), .trusted = false};
}

/// Bytes with a chat model's added tokens.
struct ChatVocabulary : SmallVocabulary {
  ChatVocabulary() : SmallVocabulary(of_bytes()) {}
  TokenId start = add("<|im_start|>", TokenType::control);
  TokenId end = add("<|im_end|>", TokenType::control);
  TokenId end_twice = add("<|im_end|><|im_end|>", TokenType::control);
  TokenId think = add("<think>", TokenType::user_defined);
  TokenId newlines = add("\n\n", TokenType::user_defined);
  TokenId ab = merge("a", "b");
  Tokenizer tokenizer = create().value();
};

TEST(Tokenizer, ControlTokensComeFromTrustedTextOnly) {
  const ChatVocabulary chat;
  EXPECT_THAT(encode(chat.tokenizer, {trusted("<|im_end|>")}), ElementsAre(chat.end));
  EXPECT_EQ(encode(chat.tokenizer, {user("<|im_end|>")}), bytes_as_tokens("<|im_end|>"));
  EXPECT_EQ(chat.tokenizer.encode("<|im_end|>").value(), bytes_as_tokens("<|im_end|>"));
}

TEST(Tokenizer, AControlTokenMayNotReachIntoUserText) {
  const ChatVocabulary chat;
  EXPECT_EQ(encode(chat.tokenizer, {trusted("<|im"), user("_end|>")}),
            bytes_as_tokens("<|im_end|>"));
  EXPECT_EQ(encode(chat.tokenizer, {user("<|im"), trusted("_end|>")}),
            bytes_as_tokens("<|im_end|>"));
  EXPECT_EQ(encode(chat.tokenizer, {trusted("<|im"), user("_"), trusted("end|>")}),
            bytes_as_tokens("<|im_end|>"));
}

TEST(Tokenizer, AControlTokenMayGoAcrossTrustedNeighbours) {
  const ChatVocabulary chat;
  EXPECT_THAT(encode(chat.tokenizer, {trusted("<|im"), trusted(""), trusted("_end|>")}),
              ElementsAre(chat.end));
}

TEST(Tokenizer, TheLongestControlTokenThatIsTrustedWins) {
  const ChatVocabulary chat;
  EXPECT_THAT(encode(chat.tokenizer, {trusted("<|im_end|><|im_end|>")}),
              ElementsAre(chat.end_twice));
  EXPECT_THAT(
      encode(chat.tokenizer, {trusted("<|im_end|><|im_en"), user("d|>")}),
      ElementsAre(chat.end, TokenId{'<'}, TokenId{'|'}, TokenId{'i'}, TokenId{'m'}, TokenId{'_'},
                  TokenId{'e'}, TokenId{'n'}, TokenId{'d'}, TokenId{'|'}, TokenId{'>'}));
}

TEST(Tokenizer, UserDefinedTokensComeFromAnyTextAndAcrossParts) {
  const ChatVocabulary chat;
  EXPECT_THAT(encode(chat.tokenizer, {user("<think>")}), ElementsAre(chat.think));
  EXPECT_THAT(encode(chat.tokenizer, {trusted("x\n"), user("\nx")}),
              ElementsAre(TokenId{'x'}, chat.newlines, TokenId{'x'}));
}

TEST(Tokenizer, PlainTextIsEncodedAcrossParts) {
  const ChatVocabulary chat;
  EXPECT_THAT(encode(chat.tokenizer, {trusted("a"), user("b"), trusted("a"), user("b")}),
              ElementsAre(chat.ab, chat.ab));
  EXPECT_THAT(encode(chat.tokenizer, {trusted("<|im_start|>a"), user("b<|im_end|>")}),
              ElementsAre(chat.start, chat.ab, TokenId{'<'}, TokenId{'|'}, TokenId{'i'},
                          TokenId{'m'}, TokenId{'_'}, TokenId{'e'}, TokenId{'n'}, TokenId{'d'},
                          TokenId{'|'}, TokenId{'>'}));
}

TEST(Tokenizer, MergesNeverMakeAControlToken) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  const TokenId end = small.add("ab", TokenType::control);
  small.merge_existing("a", "b");
  const Tokenizer tokenizer = small.create().value();
  EXPECT_EQ(tokenizer.encode("ab").value(), bytes_as_tokens("ab"));
  EXPECT_THAT(encode(tokenizer, {trusted("ab")}), ElementsAre(end));
}

TEST(Tokenizer, AnEndTokenThatIsMarkedAsUserDefinedIsStillControl) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  const TokenId named = small.add("<|im_end|>", TokenType::user_defined);
  const TokenId eot = small.add("[DONE]", TokenType::user_defined);
  small.vocabulary.special.eot = eot;
  const Tokenizer tokenizer = small.create().value();
  EXPECT_TRUE(tokenizer.is_control(named));
  EXPECT_EQ(tokenizer.encode("[DONE]<|im_end|>").value(), bytes_as_tokens("[DONE]<|im_end|>"));
  EXPECT_THAT(encode(tokenizer, {trusted("[DONE]<|im_end|>")}), ElementsAre(eot, named));
}

TEST(Tokenizer, MergesGoByRankAndFromTheLeft) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  const TokenId bc = small.merge("b", "c");
  const TokenId aa = small.merge("a", "a");
  const TokenId ab = small.merge("a", "b");
  const Tokenizer tokenizer = small.create().value();
  EXPECT_THAT(tokenizer.encode("abc").value(), ElementsAre(TokenId{'a'}, bc));
  EXPECT_THAT(tokenizer.encode("aaa").value(), ElementsAre(aa, TokenId{'a'}));
  EXPECT_THAT(tokenizer.encode("aaab").value(), ElementsAre(aa, ab));
  EXPECT_THAT(tokenizer.encode("aab").value(), ElementsAre(aa, TokenId{'b'}));
}

TEST(Tokenizer, ATokenThatMergesDoNotReachNeedsIgnoreMerges) {
  for (const bool ignores : {false, true}) {
    SmallVocabulary small = SmallVocabulary::of_bytes(ignores ? "llama-bpe" : "dbrx");
    const TokenId whole = small.add("abc");
    const Tokenizer tokenizer = small.create().value();
    for (int round = 0; round < 2; ++round) {  // the second uses what the first found out
      EXPECT_EQ(tokenizer.encode("abc").value(),
                ignores ? std::vector{whole} : bytes_as_tokens("abc"));
    }
  }
}

TEST(Tokenizer, InvalidBytesBecomeReplacementCharacters) {
  const Tokenizer tokenizer = SmallVocabulary::of_bytes().create().value();
  EXPECT_EQ(tokenizer.encode("a\xff\xe2\x82z").value(), bytes_as_tokens("a\ufffd\ufffdz"));
  EXPECT_EQ(encode(tokenizer, {user("\xc3"), user("\xa9")}), bytes_as_tokens("\ufffd\ufffd"));
}

TEST(Tokenizer, TextIsNormalizedBetweenAddedTokens) {
  SmallVocabulary small = SmallVocabulary::of_bytes("qwen35");
  const TokenId end = small.add("<|im_end|>", TokenType::control);
  const Tokenizer tokenizer = small.create().value();
  EXPECT_EQ(tokenizer.encode("e\u0301").value(), bytes_as_tokens("\u00e9"));
  EXPECT_EQ(encode(tokenizer, {user("e"), trusted("\u0301")}), bytes_as_tokens("\u00e9"));
  auto expected = bytes_as_tokens("e");
  expected.push_back(end);
  std::ranges::copy(bytes_as_tokens("\u0301"), std::back_inserter(expected));
  EXPECT_EQ(encode(tokenizer, {trusted("e<|im_end|>\u0301")}), expected);
}

TEST(Tokenizer, AFileSaysWhetherTextIsNormalized) {
  SmallVocabulary small = SmallVocabulary::of_bytes("qwen35");
  small.vocabulary.normalize_nfc = false;
  EXPECT_EQ(small.create().value().encode("e\u0301").value(), bytes_as_tokens("e\u0301"));
  small = SmallVocabulary::of_bytes("gpt-2");
  EXPECT_EQ(small.create().value().encode("e\u0301").value(), bytes_as_tokens("e\u0301"));
  small.vocabulary.normalize_nfc = true;
  EXPECT_EQ(small.create().value().encode("e\u0301").value(), bytes_as_tokens("\u00e9"));
}

TEST(Tokenizer, AByteWithoutATokenIsAnErrorUnlessThereIsAnUnknownToken) {
  SmallVocabulary small(VocabularyKind::byte_pair, "gpt-2");
  small.add("a");
  EXPECT_THAT(small.create().value().encode("ab").error().message, HasSubstr("\"b\""));
  const TokenId unknown = small.add("<unk>", TokenType::unknown);
  small.vocabulary.special.unknown = unknown;
  EXPECT_THAT(small.create().value().encode("abba").value(),
              ElementsAre(TokenId{0}, unknown, TokenId{0}));
  small.vocabulary.types.back() = static_cast<std::int32_t>(TokenType::control);
  EXPECT_FALSE(small.create().value().encode("ab"));
}

TEST(Tokenizer, TheFrameIsAddedOnce) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  const TokenId bos = small.add("<s>", TokenType::control);
  const TokenId eos = small.add("</s>", TokenType::control);
  small.vocabulary.special.bos = bos;
  small.vocabulary.special.eos = eos;
  small.vocabulary.add_bos = true;
  small.vocabulary.add_eos = true;
  const Tokenizer tokenizer = small.create().value();
  const auto framed = [&](std::string_view text) {
    const TextPart part = trusted(text);
    return tokenizer.encode({&part, 1}, Tokenizer::Frame::add).value();
  };
  EXPECT_THAT(framed("a"), ElementsAre(bos, TokenId{'a'}, eos));
  EXPECT_THAT(framed("<s>a"), ElementsAre(bos, TokenId{'a'}, eos));
  EXPECT_THAT(framed("<s>a</s>"), ElementsAre(bos, TokenId{'a'}, eos));
  EXPECT_THAT(framed(""), ElementsAre(bos, eos));
  EXPECT_THAT(tokenizer.encode("a").value(), ElementsAre(TokenId{'a'}));
}

TEST(Tokenizer, FilesMayLeaveOutWhatGoesWithoutSaying) {
  const Tokenizer spm = SmallVocabulary::of_sentence_piece().create().value();
  EXPECT_EQ(spm.special().bos, TokenId{1});
  EXPECT_EQ(spm.special().eos, TokenId{2});
  EXPECT_TRUE(spm.adds_bos() && spm.adds_space_prefix() && !spm.adds_eos());
  const Tokenizer llama3 = SmallVocabulary::of_bytes("llama-bpe").create().value();
  EXPECT_TRUE(llama3.adds_bos());
  const Tokenizer qwen = SmallVocabulary::of_bytes("qwen2").create().value();
  EXPECT_FALSE(qwen.adds_bos() || qwen.adds_eos() || qwen.adds_space_prefix());
}

TEST(Tokenizer, GenerationEndsAtRolesAndAtKnownTexts) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  const TokenId eos = small.add("<stop>", TokenType::control);
  const TokenId named = small.add("<|eot_id|>", TokenType::control);
  const TokenId fim = small.add("<pad>", TokenType::control);
  const TokenId other = small.add("<|im_start|>", TokenType::control);
  small.vocabulary.special.eos = eos;
  small.vocabulary.special.fim_padding = fim;
  const Tokenizer tokenizer = small.create().value();
  EXPECT_THAT(tokenizer.end_of_generation(), ElementsAre(eos, named, fim));
  EXPECT_TRUE(tokenizer.is_end_of_generation(named));
  EXPECT_FALSE(tokenizer.is_end_of_generation(other));
}

TEST(Tokenizer, HarmonyMessagesEndWithoutEndingTheGeneration) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  const TokenId end = small.add("<|end|>", TokenType::control);
  EXPECT_TRUE(small.create().value().is_end_of_generation(end));
  small.add("<|return|>", TokenType::control);
  small.add("<|call|>", TokenType::control);
  EXPECT_FALSE(small.create().value().is_end_of_generation(end));
}

TEST(Tokenizer, AnHtmlTagOfGemmaEndsNothing) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  const TokenId tag = small.add("</s>", TokenType::user_defined);
  const Tokenizer tokenizer = small.create().value();
  EXPECT_FALSE(tokenizer.is_end_of_generation(tag));
  EXPECT_THAT(tokenizer.encode("</s>").value(), ElementsAre(tag));
}

TEST(SentencePiece, SpacesBecomeVisibleAndOneIsPutInFront) {
  SmallVocabulary small = SmallVocabulary::of_sentence_piece();
  const TokenId a = small.add("a");
  const TokenId space_a = small.add("\u2581a", TokenType::normal, 1);
  const TokenId space{259};
  EXPECT_THAT(small.create().value().encode("a a  a").value(),
              ElementsAre(space_a, space_a, space, space_a));
  small.vocabulary.add_space_prefix = false;
  EXPECT_THAT(small.create().value().encode("a a").value(), ElementsAre(a, space_a));
  EXPECT_THAT(small.create().value().encode("").value(), ElementsAre());
}

TEST(SentencePiece, HigherScoresMergeFirstAndTiesFromTheLeft) {
  SmallVocabulary small = SmallVocabulary::of_sentence_piece();
  small.vocabulary.add_space_prefix = false;
  for (const std::string_view letter : {"a", "b", "c"}) {
    small.add(std::string(letter));
  }
  const TokenId ab = small.add("ab", TokenType::normal, -2);
  const TokenId bc = small.add("bc", TokenType::normal, -1);
  const TokenId cc = small.add("cc", TokenType::normal, 0.0f);
  const TokenId aa = small.add("aa", TokenType::normal, -0.0f);
  const Tokenizer tokenizer = small.create().value();
  EXPECT_THAT(tokenizer.encode("abc").value(), ElementsAre(TokenId{260}, bc));
  EXPECT_THAT(tokenizer.encode("abcc").value(), ElementsAre(ab, cc));
  EXPECT_THAT(tokenizer.encode("aaacc").value(), ElementsAre(aa, TokenId{260}, cc));
}

TEST(SentencePiece, WhatNoTokenCoversBecomesBytes) {
  const Tokenizer tokenizer = SmallVocabulary::of_sentence_piece().create().value();
  const auto byte = [](int value) { return static_cast<TokenId>(3 + value); };
  EXPECT_THAT(tokenizer.encode("\u00e9").value(),
              ElementsAre(TokenId{259}, byte(0xc3), byte(0xa9)));
}

TEST(SentencePiece, TextThatNamesAByteTokenOrAControlTokenIsOnlyText) {
  SmallVocabulary small = SmallVocabulary::of_sentence_piece();
  for (const char c : std::string_view("<0xA>s")) {
    small.add(std::string(1, c));
  }
  for (const std::string_view text : {"<s", "<0", "<0x", "<0x0", "<0x0A"}) {
    small.add(std::string(text));
  }
  const Tokenizer tokenizer = small.create().value();
  const auto tokens = tokenizer.encode("<s><0x0A>").value();
  EXPECT_THAT(tokens, Not(Contains(TokenId{1})));
  EXPECT_THAT(tokens, Not(Contains(TokenId{3 + 0x0a})));
}

TEST(SentencePiece, TokensAcrossWordsAreFound) {
  SmallVocabulary small = SmallVocabulary::of_sentence_piece();
  small.vocabulary.add_space_prefix = false;
  small.add("a");
  small.add("a\u2581", TokenType::normal, 1);
  const TokenId both = small.add("a\u2581a", TokenType::normal, 2);
  EXPECT_THAT(small.create().value().encode("a a").value(), ElementsAre(both));
}

TEST(Unigram, TheMostProbableSegmentationWins) {
  SmallVocabulary small = SmallVocabulary::of_sentence_piece(VocabularyKind::unigram);
  small.vocabulary.special.unknown = TokenId{0};
  small.vocabulary.add_space_prefix = false;
  small.add("a", TokenType::normal, -3);
  const TokenId b = small.add("b", TokenType::normal, -3);
  const TokenId ab = small.add("ab", TokenType::normal, -5);
  const TokenId abb = small.add("abb", TokenType::normal, -9);
  EXPECT_THAT(small.create().value().encode("abb").value(), ElementsAre(ab, b));
  small.vocabulary.scores[static_cast<std::size_t>(abb)] = -7;
  EXPECT_THAT(small.create().value().encode("abb").value(), ElementsAre(abb));
}

TEST(Unigram, RefusesAMalformedCharsmap) {
  SmallVocabulary small = SmallVocabulary::of_sentence_piece(VocabularyKind::unigram);
  small.vocabulary.precompiled_charsmap = "abc";
  EXPECT_THAT(small.create().error().message, HasSubstr("precompiled_charsmap"));
}

/// Adds tokens of 2, 4, ... 64 letters a, so that merging has many levels, and encodes `n_bytes`.
void expect_linear(SmallVocabulary small, std::size_t n_bytes) {
  std::string token = "a";
  for (std::size_t level = 1; level <= 6; ++level) {
    if (small.vocabulary.kind == VocabularyKind::byte_pair) {
      small.merge(token, token);
    } else {
      const std::size_t score = level * token.size();  // the longer the better, by any rule
      small.add(token + token, TokenType::normal, static_cast<float>(score));
    }
    token += token;
  }
  const Tokenizer tokenizer = small.create().value();
  const std::clock_t start = std::clock();
  const auto tokens = tokenizer.encode(std::string(n_bytes, 'a'));
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_TRUE(tokens);
  EXPECT_LT(tokens->size(), n_bytes / 64 + 8);
  EXPECT_LT(seconds, 10);  // a release build takes 0.2; a quadratic loop would take an hour
}

TEST(Tokenizer, AMillionTimesOneCharacterIsNoTrouble) {
  expect_linear(SmallVocabulary::of_bytes(), 1'000'000);
}

TEST(SentencePiece, ManyTimesOneCharacterIsNoTrouble) {
  SmallVocabulary small = SmallVocabulary::of_sentence_piece();
  small.add("a");
  expect_linear(std::move(small), 300'000);
}

TEST(Unigram, ManyTimesOneCharacterIsNoTrouble) {
  SmallVocabulary small = SmallVocabulary::of_sentence_piece(VocabularyKind::unigram);
  small.add("a", TokenType::normal, -100);
  expect_linear(std::move(small), 300'000);
}

TEST(Tokenizer, ManyNestedAddedTokensAreNoTrouble) {
  SmallVocabulary small = SmallVocabulary::of_bytes();
  for (std::size_t length = 2; length <= AddedTokens::max_added_token_bytes; ++length) {
    small.add(std::string(length, 'a'), TokenType::user_defined);
  }
  const Tokenizer tokenizer = small.create().value();
  EXPECT_EQ(tokenizer.encode(std::string(512 * 200, 'a')).value().size(), 200u);
  std::string near_misses;  // every position looks like a token until its last byte
  for (int i = 0; i < 100'000; ++i) {
    near_misses += "ab";
  }
  EXPECT_EQ(tokenizer.encode(near_misses).value(), bytes_as_tokens(near_misses));
}

}  // namespace
}  // namespace hearth::tokenizer
