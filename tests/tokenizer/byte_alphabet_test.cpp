#include "tokenizer/byte_alphabet.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace hearth::tokenizer {
namespace {

TEST(ByteAlphabet, PrintableBytesStandForThemselvesAndOthersComeInOrder) {
  EXPECT_EQ(byte_alphabet_character('A'), U'A');
  EXPECT_EQ(byte_alphabet_character('~'), U'~');
  EXPECT_EQ(byte_alphabet_character(0xa1), U'\u00a1');
  EXPECT_EQ(byte_alphabet_character(0xff), U'\u00ff');
  EXPECT_EQ(byte_alphabet_character(0x00), U'\u0100');
  EXPECT_EQ(byte_alphabet_character('\n'), U'\u010a');
  EXPECT_EQ(byte_alphabet_character(' '), U'\u0120');
  EXPECT_EQ(byte_alphabet_character(0x7f), U'\u0121');
  EXPECT_EQ(byte_alphabet_character(0xa0), U'\u0142');
  EXPECT_EQ(byte_alphabet_character(0xad), U'\u0143');
}

TEST(ByteAlphabet, EveryByteHasItsOwnCharacterAndComesBack) {
  std::set<char32_t> characters;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t character = byte_alphabet_character(static_cast<std::uint8_t>(byte));
    EXPECT_TRUE(characters.insert(character).second) << byte;
    std::string text;
    append_utf8(text, character);
    EXPECT_EQ(decode_byte_alphabet(text), std::string(1, static_cast<char>(byte)));
  }
}

TEST(ByteAlphabet, TextWithOtherCharactersSpellsNoBytes) {
  EXPECT_EQ(decode_byte_alphabet("\u0120the"), " the");
  EXPECT_EQ(decode_byte_alphabet("a b"), std::nullopt);
  EXPECT_EQ(decode_byte_alphabet("\uff5c"), std::nullopt);
  EXPECT_EQ(decode_byte_alphabet("\xff"), std::nullopt);
}

TEST(ByteToken, NamesOneByteInTwoHexadecimalDigits) {
  EXPECT_EQ(parse_byte_token("<0x00>"), 0x00);
  EXPECT_EQ(parse_byte_token("<0xfF>"), 0xff);
  for (const std::string_view bad : {"<0x-1>", "<0xZZ>", "<0x1>", "<0x001>", "<0x+1>", "<0x 1>",
                                     "<0X0A>", "0x0A", "<0x0A", ""}) {
    EXPECT_EQ(parse_byte_token(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace hearth::tokenizer
