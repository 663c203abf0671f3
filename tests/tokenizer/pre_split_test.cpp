#include "tokenizer/pre_split.h"

#include <ctime>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tokenizer/text_list.h"

namespace hearth::tokenizer {
namespace {

using testing::HasSubstr;

PreSplit split_of(std::string_view name) {
  return PreSplit::create(*find_pre_tokenizer(name).value()).value();
}

/// Per rule, the piece lengths of each text, as the Hugging Face tokenizers split them.
std::map<std::string, std::vector<std::vector<std::uint32_t>>> read_expected_splits(
    std::size_t n_texts) {
  const auto lines =
      split_terminated(read_file(HEARTH_TESTS_DIR "/golden/tokenizers/splits.out"), "\n");
  std::map<std::string, std::vector<std::vector<std::uint32_t>>> splits;
  for (std::size_t i = 0; i < lines.size(); i += 1 + n_texts) {
    for (std::size_t text = 0; text < n_texts; ++text) {
      const auto numbers = parse_numbers(lines.at(i + 1 + text));
      splits[lines[i]].emplace_back(numbers.begin(), numbers.end());
    }
  }
  return splits;
}

TEST(PreSplit, CutsNastyTextsWhereThePublishedExpressionsDo) {
  const auto texts = read_texts(HEARTH_TESTS_DIR "/golden/tokenizers/texts.inp");
  const auto splits = read_expected_splits(texts.size());
  ASSERT_GE(splits.size(), 22u);
  for (const auto& [name, expected] : splits) {
    const PreSplit split = split_of(name);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(split.split(texts[i]).value(), expected[i])
          << name << ", text " << i << ": " << texts[i];
    }
  }
}

TEST(PreSplit, IsLinearInLongRunsOfOneCharacter) {
  std::map<std::string, PreSplit> splits;
  for (const auto& [name, expected] :
       read_expected_splits(read_texts(HEARTH_TESTS_DIR "/golden/tokenizers/texts.inp").size())) {
    splits.emplace(name, split_of(name));
  }
  constexpr std::size_t n_bytes = 100'000;  // a quadratic rule takes 5 s or more
  for (const std::string_view unit :
       {"a", "A", " ", "\n", "\t", "\r\n", " \n", "1", "!", "'", "é", "中", "🦙", "\u0301"}) {
    for (const std::string_view end : {"", "x"}) {
      std::string text;
      while (text.size() < n_bytes) {
        text.append(unit);
      }
      text.append(end);
      for (const auto& [name, split] : splits) {
        const std::clock_t start = std::clock();
        const auto lengths = split.split(text);
        const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
        ASSERT_TRUE(lengths) << name << ": " << lengths.error().message;
        EXPECT_EQ(std::accumulate(lengths->begin(), lengths->end(), std::size_t{0}), text.size());
        EXPECT_LT(seconds, 1) << name << ": " << unit << "..." << end;
      }
    }
  }
}

TEST(PreTokenizer, AnEmptyNameIsTheDefault) {
  EXPECT_EQ(find_pre_tokenizer("").value(), find_pre_tokenizer("default").value());
}

TEST(PreTokenizer, AnUnknownNameIsAnErrorThatSaysIt) {
  const auto unknown = find_pre_tokenizer("gpt-9");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::unsupported);
  EXPECT_THAT(unknown.error().message, HasSubstr("gpt-9"));
}

TEST(PreTokenizer, KnownButUnhandledNamesSaySo) {
  for (const std::string_view name : {"kimi-k2", "afmoe"}) {
    const auto unhandled = find_pre_tokenizer(name);
    ASSERT_FALSE(unhandled);
    EXPECT_EQ(unhandled.error().code, ErrorCode::unsupported);
    EXPECT_THAT(unhandled.error().message, HasSubstr("not handled"));
  }
}

}  // namespace
}  // namespace hearth::tokenizer
