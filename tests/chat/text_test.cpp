#include "chat/template/text.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chat/template/search.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Text mixed() {  // "ab" trusted, "cd" untrusted, "e" trusted
  TextBuilder builder;
  builder.append("a", Origin::trusted);
  builder.append("b", Origin::trusted);
  builder.append("cd", Origin::untrusted);
  builder.append("", Origin::trusted);
  builder.append("e", Origin::trusted);
  return builder.take();
}

TEST(Text, MergesNeighboursOfOneOrigin) {
  EXPECT_THAT(mixed().parts(),
              ElementsAre(TextPart{"ab", true}, TextPart{"cd", false}, TextPart{"e", true}));
  EXPECT_THAT(Text().parts(), IsEmpty());
  EXPECT_THAT(Text("", Origin::untrusted).parts(), IsEmpty());
}

TEST(Text, SlicesKeepTheOriginOfEachByte) {
  const Text text = mixed();
  for (std::size_t begin = 0; begin <= text.size(); ++begin) {
    for (std::size_t end = begin; end <= text.size(); ++end) {
      const Text slice = text.slice(begin, end);
      ASSERT_EQ(slice.bytes(), text.bytes().substr(begin, end - begin));
      for (std::size_t i = 0; i < slice.size(); ++i) {
        ASSERT_EQ(slice.origin_at(i), text.origin_at(begin + i)) << begin << " " << end << " " << i;
      }
    }
  }
}

TEST(Text, IsAsTrustedAsItsWeakestCharacter) {
  EXPECT_EQ(mixed().weakest_origin(), Origin::untrusted);
  EXPECT_EQ(mixed().slice(0, 2).weakest_origin(), Origin::trusted);
  EXPECT_EQ(Text().weakest_origin(), Origin::trusted);
}

TEST(Unicode, CountsEachStrayByteOfInvalidTextAsOneCharacter) {
  EXPECT_EQ(count_code_points("aé€🌍"), 4u);
  for (const std::string_view invalid : {"\x80", "\xff", "\xc3", "\xc0", "\xf5"}) {
    EXPECT_EQ(count_code_points(invalid), 1u);
  }
  EXPECT_EQ(count_code_points("\xe2\x82"), 2u);          // cut off
  EXPECT_EQ(count_code_points("\xed\xa0\x80"), 3u);      // a surrogate
  EXPECT_EQ(count_code_points("\xf4\x90\x80\x80"), 4u);  // past U+10FFFF
  EXPECT_EQ(count_code_points("\xe0\x80\x80"), 3u);      // overlong
}

TEST(Unicode, WalksBackwardAsForward) {
  std::mt19937 random(1);
  const std::string alphabet = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\x8d\x80\xff";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 8; ++i) {
      text.push_back(alphabet[random() % alphabet.size()]);
    }
    std::vector<std::size_t> forward;
    for (std::size_t at = 0; at < text.size(); at += code_point_at(text, at).n_bytes) {
      forward.push_back(at);
    }
    std::vector<std::size_t> backward;
    for (std::size_t at = text.size(); at > 0;) {
      at = previous_code_point(text, at);
      backward.insert(backward.begin(), at);
    }
    ASSERT_EQ(forward, backward) << testing::PrintToString(text);
  }
}

TEST(Unicode, CaseMappingsUndoEachOther) {
  for (char32_t c = 0; c < 0x10000; ++c) {
    if (to_upper(to_lower(c)) != to_upper(c)) {
      ADD_FAILURE() << "U+" << std::hex << static_cast<std::uint32_t>(c);
    }
  }
}

TEST(Search, AgreesWithThePlainOneForEveryLength) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::string haystack;
    for (int i = 0; i < 80; ++i) {
      haystack.push_back(random() % 8 == 0 ? 'b' : 'a');
    }
    const std::size_t n = random() % 40;
    const std::size_t at = random() % 41;
    std::string needle = haystack.substr(at, n);
    if (random() % 2 == 0 && !needle.empty()) {
      needle[random() % needle.size()] = 'c';
    }
    const std::size_t from = random() % 81;
    const auto first = find_bytes(haystack, needle, from);
    ASSERT_EQ(first.value_or(std::string::npos), haystack.find(needle, from));
    const auto last = find_last_bytes(haystack, needle, from);
    ASSERT_EQ(last.value_or(std::string::npos), haystack.substr(0, from).rfind(needle));
  }
}

}  // namespace
}  // namespace hearth::chat
