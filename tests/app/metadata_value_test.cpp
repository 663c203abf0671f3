#include "metadata_value.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "formats/gguf/metadata.h"

namespace hearth::app {
namespace {

using formats::Metadata;
using nlohmann::ordered_json;

TEST(MetadataValue, ShowsScalarsAsTheyAre) {
  EXPECT_EQ(to_text(std::uint32_t{7}), "7");
  EXPECT_EQ(to_text(1e-05F), "1e-05");
  EXPECT_EQ(to_text(true), "true");
  EXPECT_EQ(to_text(std::string_view("two\nlines")), "two\\nlines");
  EXPECT_EQ(to_json(std::uint64_t{1} << 63), ordered_json(std::uint64_t{1} << 63));
  EXPECT_EQ(to_json(std::string_view("a\xFF")), ordered_json("a\uFFFD"));
}

TEST(MetadataValue, CutsLongStringsInTextOnly) {
  const std::string longer(200, 'x');
  EXPECT_LT(to_text(std::string_view(longer)).size(), 80);
  EXPECT_EQ(to_json(std::string_view(longer)), ordered_json(longer));
}

TEST(MetadataValue, ShowsTheFirstElementsOfAnArray) {
  Metadata metadata;
  metadata.set_array<std::int32_t>("numbers", std::vector<std::int32_t>{1, -2, 3, 4, 5, 6, 7, 8});
  const auto& value = metadata.entry("numbers")->value;
  EXPECT_EQ(to_text(value), "[1, -2, 3, 4, 5, 6, ...] 8 x i32");
  EXPECT_EQ(to_json(value),
            (ordered_json{{"element_type", "i32"}, {"count", 8}, {"first", {1, -2, 3, 4, 5, 6}}}));
}

TEST(MetadataValue, ShowsShortArraysWhole) {
  Metadata metadata;
  metadata.set_array("words", std::vector<std::string>{"<s>", "\x1B"});
  metadata.set_array<bool>("flags", std::array{true, false});
  metadata.set_array<float>("none", {});
  EXPECT_EQ(to_text(metadata.entry("words")->value), "[<s>, \\x1b] 2 x string");
  EXPECT_EQ(to_text(metadata.entry("flags")->value), "[true, false] 2 x bool");
  EXPECT_EQ(to_text(metadata.entry("none")->value), "[] 0 x f32");
  EXPECT_EQ(to_json(metadata.entry("flags")->value)["first"], (ordered_json{true, false}));
}

}  // namespace
}  // namespace hearth::app
