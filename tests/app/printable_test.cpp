#include "printable.h"

#include <gtest/gtest.h>

namespace hearth::app {
namespace {

TEST(Printable, KeepsTextAndWritesControlCharactersOut) {
  EXPECT_EQ(printable("plain \u00FCml\u00E4ut \U0001F600"), "plain \u00FCml\u00E4ut \U0001F600");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1B[2J\x7F"), "\\x1b[2J\\x7f");
  EXPECT_EQ(printable("\u009B"), "\\x9b") << "a control sequence of one character";
}

TEST(Printable, ReplacesIllFormedBytes) {
  EXPECT_EQ(printable("a\xFF\xC3"), "a\uFFFD\uFFFD");
}

TEST(Printable, CutsAtACharacter) {
  EXPECT_EQ(printable("\u00FC\u00FC\u00FC", 5), "\u00FC\u00FC...");
  EXPECT_EQ(printable("abc", 3), "abc");
}

TEST(PrintableAnswer, KeepsLineBreaksAndTabs) {
  EXPECT_EQ(printable_answer("a\n\n\tb\x1B]0;title\n"), "a\n\n\tb\\x1b]0;title\n");
  EXPECT_EQ(printable_answer(""), "");
}

}  // namespace
}  // namespace hearth::app
