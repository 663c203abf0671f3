#include "base/utf8.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr std::string_view fffd = "\xef\xbf\xbd";

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all.append(text);
  }
  return all;
}

TEST(Utf8, EveryScalarValueSurvivesTheRoundTrip) {
  for (char32_t code_point = 0; code_point <= 0x10ffff; ++code_point) {
    if (code_point == 0xd800) {
      code_point = 0xe000;
    }
    std::string text;
    append_utf8(text, code_point);
    const Utf8Character character = decode_utf8(text);
    ASSERT_EQ(character.status, Utf8Status::valid) << static_cast<unsigned>(code_point);
    ASSERT_EQ(character.code_point, code_point);
    ASSERT_EQ(character.n_bytes, text.size());
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndValuesBeyondTheLast) {
  for (const std::string_view bad : {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
                                     "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
                                     "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_FALSE(is_valid_utf8(bad));
    EXPECT_EQ(replace_invalid_utf8(bad), repeated(fffd, static_cast<int>(bad.size())));
  }
}

// The examples of the Unicode Standard 15, tables 3-8 to 3-11.
TEST(Utf8, ReplacesOneMaximalSubpartByOneCharacter) {
  EXPECT_EQ(replace_invalid_utf8("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), repeated(fffd, 8) + "A");
  EXPECT_EQ(replace_invalid_utf8("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"), repeated(fffd, 8) + "A");
  EXPECT_EQ(replace_invalid_utf8("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"),
            repeated(fffd, 5) + "A" + repeated(fffd, 2) + "B");
  EXPECT_EQ(replace_invalid_utf8("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), repeated(fffd, 4) + "A");
}

TEST(Utf8, FindsAnInvalidByteBehindAsciiOfAnyLength) {
  for (std::size_t length = 0; length < 40; ++length) {
    const std::string ascii(length, 'a');
    EXPECT_TRUE(is_valid_utf8(ascii));
    EXPECT_TRUE(is_valid_utf8(ascii + "\xc3\xa9" + ascii));
    EXPECT_FALSE(is_valid_utf8(ascii + "\x80" + ascii));
    EXPECT_FALSE(is_valid_utf8(ascii + "\xc3"));
  }
}

TEST(Utf8, HoldsBackOnlyWhatMoreBytesCouldFinish) {
  EXPECT_EQ(incomplete_utf8_tail(""), 0u);
  EXPECT_EQ(incomplete_utf8_tail("abc"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("a\xc3"), 1u);
  EXPECT_EQ(incomplete_utf8_tail("a\xc3\xa9"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xe2\x82"), 2u);
  EXPECT_EQ(incomplete_utf8_tail("\xf0\x9f\xa6"), 3u);
  EXPECT_EQ(incomplete_utf8_tail("\xf0\x9f\xa6\x99"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\x80\x80\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xe0\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xff"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xe2\x82\xe2"), 1u);
}

}  // namespace
}  // namespace hearth
