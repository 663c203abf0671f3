/// Properties that hold for every text.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/utf8.h"
#include "tests/tokenizer/small_vocabulary.h"
#include "tokenizer/detokenizer.h"

namespace hearth::tokenizer {
namespace {

/// A vocabulary in which many short texts merge, with a control and a user-defined token.
Tokenizer make_byte_level(std::string_view pre) {
  SmallVocabulary small = SmallVocabulary::of_bytes(pre);
  small.merge("a", "b");
  small.merge("b", "c");
  small.merge("\u0120", "a");
  small.merge("ab", "c");
  small.merge("\u00c3", "\u00a9");  // the two bytes of é
  small.merge("ab", "ab");
  small.add("<|end|>", TokenType::control);
  small.add("<think>", TokenType::user_defined);
  return small.create().value();
}

/// Valid text out of pieces that matter to tokenizers, and any other characters.
std::string any_text() {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::oneOf(
      rc::gen::element<std::string>("a", "b", "c", "abc", " ", "  ", "\n", "\r\n", "'s", "é", "1",
                                    "<|end|>", "<think>", "<|en", "🦙", "\u0301", "中"),
      rc::gen::map(rc::gen::inRange<std::uint32_t>(0, 0x10ffff), [](std::uint32_t code_point) {
        std::string text;
        append_utf8(text, code_point >= 0xd800 && code_point < 0xe000 ? U'x' : code_point);
        return text;
      })));
  std::string text;
  for (const std::string& piece : pieces) {
    text += piece;
  }
  return text;
}

/// `text` cut at random places between characters.
std::vector<TextPart> cut_randomly(std::string_view text, bool trusted) {
  std::vector<TextPart> parts{{.text = "", .trusted = trusted}};
  while (!text.empty()) {
    if (*rc::gen::inRange(0, 4) == 0) {
      parts.push_back({.text = "", .trusted = trusted});
    }
    const std::uint8_t n_bytes = decode_utf8(text).n_bytes;
    parts.back().text.append(text.substr(0, n_bytes));
    text.remove_prefix(n_bytes);
  }
  return parts;
}

TEST(TokenizerProperty, DecodingGivesTheEncodedTextBack) {
  for (const std::string_view pre : {"gpt-2", "llama-bpe", "deepseek-r1-qwen", "deepseek-llm"}) {
    const Tokenizer tokenizer = make_byte_level(pre);
    EXPECT_TRUE(rc::check([&] {
      const std::string text = any_text();
      RC_ASSERT(detokenize(tokenizer, tokenizer.encode(text).value()) == text);
    }));
  }
}

TEST(TokenizerProperty, DecodingGivesNormalizedTextBackWhereTheVocabularyNormalizes) {
  const Tokenizer tokenizer = make_byte_level("qwen35");
  EXPECT_TRUE(rc::check([&] {
    const std::string text = any_text();
    RC_ASSERT(detokenize(tokenizer, tokenizer.encode(text).value()) == to_nfc(text));
  }));
}

TEST(TokenizerProperty, UserTextNeverYieldsAControlToken) {
  const Tokenizer tokenizer = make_byte_level("gpt-2");
  EXPECT_TRUE(rc::check([&] {
    const auto tokens = tokenizer.encode(any_text()).value();
    RC_ASSERT(
        std::ranges::none_of(tokens, [&](TokenId token) { return tokenizer.is_control(token); }));
  }));
}

TEST(TokenizerProperty, CuttingTextIntoPartsChangesNothing) {
  const Tokenizer tokenizer = make_byte_level("llama-bpe");
  EXPECT_TRUE(rc::check([&] {
    const bool trusted = *rc::gen::arbitrary<bool>();
    const TextPart whole{.text = any_text(), .trusted = trusted};
    RC_ASSERT(tokenizer.encode(cut_randomly(whole.text, trusted)).value() ==
              tokenizer.encode({&whole, 1}).value());
  }));
}

TEST(TokenizerProperty, StreamedTextIsValidAndEqualsTheWhole) {
  const Tokenizer tokenizer = make_byte_level("gpt-2");
  EXPECT_TRUE(rc::check([&] {
    const auto tokens = *rc::gen::container<std::vector<int>>(
        rc::gen::inRange(0, static_cast<int>(tokenizer.n_tokens())));
    Detokenizer detokenizer(tokenizer);
    std::string streamed;
    std::string bytes;
    for (const int id : tokens) {
      const TokenId token{id};
      const std::string text = detokenizer.push(token);
      RC_ASSERT(is_valid_utf8(text));
      streamed += text;
      if (!tokenizer.is_control(token)) {
        bytes.append(tokenizer.token_bytes(token));
      }
    }
    RC_ASSERT(streamed + detokenizer.flush() == replace_invalid_utf8(bytes));
  }));
}

/// The definition: look for the merge of lowest rank, the leftmost on ties, until there is none.
std::vector<std::string> merge_naively(
    std::string_view text, const std::vector<std::pair<std::string, std::string>>& merges) {
  std::vector<std::string> symbols;
  for (const char c : text) {
    symbols.emplace_back(1, c);
  }
  for (;;) {
    bool has_merged = false;
    for (const auto& [left, right] : merges) {
      for (std::size_t i = 0; i + 1 < symbols.size() && !has_merged; ++i) {
        if (symbols[i] == left && symbols[i + 1] == right) {
          symbols[i] += symbols[i + 1];
          symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
          has_merged = true;
        }
      }
      if (has_merged) {
        break;
      }
    }
    if (!has_merged) {
      return symbols;
    }
  }
}

TEST(TokenizerProperty, MergingEqualsTheDefinition) {
  EXPECT_TRUE(rc::check([] {
    SmallVocabulary small = SmallVocabulary::of_bytes();
    std::vector<std::string> texts{"a", "b", "c"};
    std::vector<std::pair<std::string, std::string>> merges;
    for (int i = *rc::gen::inRange(1, 12); i > 0; --i) {
      const std::string left = *rc::gen::elementOf(texts);
      const std::string right = *rc::gen::elementOf(texts);
      if (std::ranges::find(texts, left + right) == texts.end()) {
        texts.push_back(left + right);
        merges.emplace_back(left, right);
        small.merge(left, right);
      }
    }
    const Tokenizer tokenizer = small.create().value();
    const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
    std::vector<std::string> symbols;
    const auto tokens = tokenizer.encode(text).value();
    for (const TokenId token : tokens) {
      symbols.emplace_back(tokenizer.token_bytes(token));
    }
    RC_ASSERT(symbols == merge_naively(text, merges));
  }));
}

}  // namespace
}  // namespace hearth::tokenizer
