#include "tokenizer/charsmap.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::tokenizer {
namespace {

using testing::HasSubstr;

std::string make_charsmap(const std::vector<std::uint32_t>& nodes, std::string_view replacements) {
  std::string bytes;
  const auto put = [&bytes](std::uint32_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(static_cast<std::uint32_t>(4 * nodes.size()));
  for (const std::uint32_t node : nodes) {
    put(node);
  }
  return bytes.append(replacements);
}

constexpr std::uint32_t leaf_flag = 0x100;
constexpr std::uint32_t node(std::uint32_t offset, std::uint32_t label) {
  return (offset << 10) | label;
}

// Replaces "a": the root leads to node 'a', which leads to the leaf beside it.
std::vector<std::uint32_t> one_letter_trie(std::uint32_t leaf) {
  std::vector<std::uint32_t> nodes(256);
  nodes['a'] = node(1, 'a') | leaf_flag;  // 'a' ^ 1 is the leaf
  nodes['a' ^ 1] = leaf;
  return nodes;
}

TEST(Charsmap, ReplacesWhatTheTrieHolds) {
  using std::string_literals::operator""s;
  const Charsmap map = Charsmap::parse(make_charsmap(one_letter_trie(2), "x\0yz\0"s)).value();
  EXPECT_EQ(map.normalize("banana é"), "byznyznyz é");
  EXPECT_EQ(map.normalize(""), "");
}

TEST(Charsmap, AnEmptyOneReplacesNothing) {
  EXPECT_EQ(Charsmap::parse("").value().normalize("aé"), "aé");
}

TEST(Charsmap, RefusesSizesThatDoNotFit) {
  for (const std::string& bytes :
       {std::string("\1\0\0", 3), std::string("\4\0\0\0", 4), std::string("\xff\xff\xff\xff", 4),
        std::string("\3\0\0\0abc", 7), make_charsmap({0, 0}, "unterminated"),
        make_charsmap({0, 0}, std::string(257, 'a') + '\0')}) {
    const auto map = Charsmap::parse(bytes);
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().code, ErrorCode::invalid_file);
    EXPECT_THAT(map.error().message, HasSubstr("precompiled_charsmap"));
  }
}

TEST(Charsmap, OffsetsOutsideOfItReplaceNothing) {
  using std::string_literals::operator""s;
  const auto normalize = [](const std::vector<std::uint32_t>& nodes) {
    return Charsmap::parse(make_charsmap(nodes, "x\0"s)).value().normalize("banana");
  };
  EXPECT_EQ(normalize(one_letter_trie(2)), "banana");
  EXPECT_EQ(normalize(one_letter_trie(0x7fffffff)), "banana");
  EXPECT_EQ(normalize({0xffffffff}), "banana");
  std::vector<std::uint32_t> leads_away(256);
  leads_away['a'] = node(0x1fffff, 'a') | leaf_flag;
  EXPECT_EQ(normalize(leads_away), "banana");
}

TEST(Charsmap, ATrieThatGoesInCirclesEnds) {
  std::vector<std::uint32_t> nodes(256);
  nodes['a'] = node('a', 'a');  // 'a' ^ 'a' is the root again
  const Charsmap map = Charsmap::parse(make_charsmap(nodes, "")).value();
  const std::string text(10'000, 'a');
  EXPECT_EQ(map.normalize(text), text);
}

}  // namespace
}  // namespace hearth::tokenizer
