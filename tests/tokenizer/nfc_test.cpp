#include "tokenizer/nfc.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/quant/sha256.h"
#include "tests/tokenizer/text_list.h"

namespace hearth::tokenizer {
namespace {

std::filesystem::path golden(std::string_view name) {
  return std::filesystem::path(HEARTH_TESTS_DIR) / "golden/nfc" / name;
}

/// What changes of every assigned character between `before` and `behind`, joined.
std::string changed_texts(std::string_view before, std::string_view behind) {
  std::string changed;
  for (const char32_t plane : {0u, 1u, 2u, 14u}) {
    for (char32_t code_point = plane << 16; code_point < (plane + 1) << 16; ++code_point) {
      if (code_point < 0xd800 || code_point > 0xdfff) {
        std::string text(before);
        append_utf8(text, code_point);
        text += behind;
        const std::string normalized = to_nfc(text);
        changed += normalized == text ? "" : normalized;
      }
    }
  }
  return changed;
}

TEST(Nfc, NormalizesEveryCharacterAsUnicodeSays) {
  const auto expected = split_terminated(read_file(golden("checksums.golden")), "\n");
  ASSERT_EQ(expected.size(), 3u);
  const auto checksum = [](const std::string& text) {
    return quant::sha256(std::as_bytes(std::span(text)));
  };
  EXPECT_EQ(checksum(changed_texts("", "")), expected[0]);
  EXPECT_EQ(checksum(changed_texts("a", "")), expected[1]);
  EXPECT_EQ(checksum(changed_texts("", "\u0323\u0301")), expected[2]);
}

std::string text_of_codes(const std::string& codes) {
  std::istringstream stream(codes);
  std::string text;
  for (std::uint32_t code_point = 0; stream >> std::hex >> code_point;) {
    append_utf8(text, code_point);
  }
  return text;
}

TEST(Nfc, NormalizesSequencesAsUnicodeSays) {
  const auto lines = split_terminated(read_file(golden("sequences.golden")), "\n");
  ASSERT_EQ(lines.size(), 800u);
  for (const std::string& line : lines) {
    const std::string text = text_of_codes(line.substr(0, line.find(';')));
    const std::string expected = text_of_codes(line.substr(line.find(';') + 1));
    EXPECT_EQ(to_nfc(text), expected) << line;
    EXPECT_EQ(to_nfc(expected), expected) << line;
    EXPECT_TRUE(text == expected || !is_plainly_nfc(text)) << line;
  }
}

TEST(Nfc, TextOfManyScriptsIsPlain) {
  for (const std::string_view text : {"", "plain", "naïve Ångström", "Phở tiếng Việt", "한국어 각",
                                      "中文、かなガギ", "שלום", "😀 ½ ﬁ ①"}) {
    EXPECT_TRUE(is_plainly_nfc(text)) << text;
    EXPECT_EQ(to_nfc(text), text);
  }
}

TEST(Nfc, TextThatMayChangeIsNotPlain) {
  for (const std::string_view text : {"e\u0301", "\u0301", "\u212b", "\u1100\u1161", "\uac00\u11a8",
                                      "\u0958", "\U0002f800", "\u0344"}) {
    EXPECT_FALSE(is_plainly_nfc(text)) << text;
  }
}

TEST(Nfc, SortsManyMarksInOnePass) {
  std::string text = "a";
  std::string sorted = "a";
  constexpr int n_marks = 100'000;
  for (int i = 0; i < n_marks; ++i) {
    text += "\u0345\u0334";  // classes 240 and 1
    sorted += "\u0334";
  }
  for (int i = 0; i < n_marks; ++i) {
    sorted += "\u0345";
  }
  EXPECT_EQ(to_nfc(text), sorted);  // never, if it took the square of their number
}

}  // namespace
}  // namespace hearth::tokenizer
