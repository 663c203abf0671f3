#include "base/ascii_case.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(AsciiCase, LettersAloneHaveACase) {
  EXPECT_TRUE(equal_without_case("Q8_0", "q8_0"));
  EXPECT_TRUE(equal_without_case("UD-Q4_K_XL", "ud-q4_k_xl"));
  EXPECT_TRUE(equal_without_case("", ""));
  EXPECT_FALSE(equal_without_case("q8_0", "q8_01"));
  EXPECT_FALSE(equal_without_case("[", "{"));  // 32 apart, as letters are
  EXPECT_FALSE(equal_without_case("\u00c4", "\u00e4"));
}

}  // namespace
}  // namespace hearth
