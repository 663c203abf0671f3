#include "formats/gguf/metadata.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t largest_u32 = std::numeric_limits<std::uint32_t>::max();

template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "no error" : result.error().message;
}

TEST(Metadata, IntegersOfAnyWidthAreAcceptedWhenTheyFit) {
  Metadata metadata;
  metadata.set("u8", std::uint8_t{200});
  metadata.set("i64", std::int64_t{-3});
  metadata.set("u64", largest_u32);
  EXPECT_EQ(metadata.get<std::uint32_t>("u8"), 200u);
  EXPECT_EQ(metadata.get<std::int8_t>("i64"), -3);
  EXPECT_EQ(metadata.get<std::uint32_t>("u64"), largest_u32);
  EXPECT_EQ(metadata.get<std::int64_t>("u64"), 4'294'967'295);
}

TEST(Metadata, IntegersOutOfRangeAreErrors) {
  Metadata metadata;
  metadata.set("negative", std::int32_t{-1});
  metadata.set("large", largest_u32 + 1);
  EXPECT_EQ(message_of(metadata.get<std::uint32_t>("negative")),
            "key \"negative\": expected an integer from 0 to 4294967295, found i32 -1");
  EXPECT_THAT(message_of(metadata.get<std::uint32_t>("large")), HasSubstr("found u64 4294967296"));
  EXPECT_FALSE(metadata.get<std::uint64_t>("negative"));
}

TEST(Metadata, FloatsComeFromBothWidthsAndFromNothingElse) {
  Metadata metadata;
  metadata.set("f32", 0.5f);
  metadata.set("f64", 0.25);
  metadata.set("huge", 1e300);
  metadata.set("infinite", std::numeric_limits<double>::infinity());
  metadata.set("integer", std::uint32_t{1});
  EXPECT_EQ(metadata.get<double>("f32"), 0.5);
  EXPECT_EQ(metadata.get<float>("f64"), 0.25f);
  EXPECT_EQ(metadata.get<float>("infinite"), std::numeric_limits<float>::infinity());
  EXPECT_THAT(message_of(metadata.get<float>("huge")), HasSubstr("in the range of f32"));
  EXPECT_THAT(message_of(metadata.get<float>("integer")), HasSubstr("found u32 1"));
  EXPECT_FALSE(metadata.get<std::uint32_t>("f32"));
}

TEST(Metadata, BoolsAndStringsComeOnlyFromTheirOwnType) {
  Metadata metadata;
  metadata.set("bool", true);
  metadata.set("string", "text");
  metadata.set("integer", std::uint8_t{1});
  EXPECT_EQ(metadata.get<bool>("bool"), true);
  EXPECT_EQ(metadata.get<std::string_view>("string"), "text");
  EXPECT_EQ(message_of(metadata.get<bool>("integer")),
            "key \"integer\": expected a bool, found u8 1");
  EXPECT_EQ(message_of(metadata.get<std::string_view>("bool")),
            "key \"bool\": expected a string, found bool true");
  EXPECT_EQ(message_of(metadata.get<std::uint32_t>("bool")),
            "key \"bool\": expected an integer from 0 to 4294967295, found bool true");
}

TEST(Metadata, AnAbsentKeyIsNotFoundOrNothing) {
  const Metadata metadata("model.gguf");
  const auto found = metadata.get<std::uint32_t>("llama.block_count");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::not_found);
  EXPECT_EQ(found.error().message,
            "model.gguf: key \"llama.block_count\": expected an integer from 0 to 4294967295, "
            "found no such key");
  EXPECT_EQ(metadata.find<std::uint32_t>("llama.block_count").value(), std::nullopt);
  EXPECT_EQ(metadata.find_array<bool>("x").value(), std::nullopt);
}

TEST(Metadata, AWrongTypeIsAnErrorForOptionalKeysToo) {
  Metadata metadata;
  metadata.set("k", "text");
  EXPECT_EQ(metadata.find<float>("k").error().code, ErrorCode::invalid_file);
  EXPECT_EQ(metadata.find_array<float>("k").error().code, ErrorCode::invalid_file);
}

TEST(Metadata, NumericArraysAreConvertedElementByElement) {
  Metadata metadata;
  metadata.set_array<std::uint8_t>("u8", std::array<std::uint8_t, 3>{1, 2, 250});
  metadata.set_array<double>("f64", std::array{0.5, -2.0});
  EXPECT_THAT(*metadata.get_array<std::int32_t>("u8"), ElementsAre(1, 2, 250));
  EXPECT_THAT(*metadata.get_array<float>("f64"), ElementsAre(0.5f, -2.0f));
  EXPECT_EQ(
      message_of(metadata.get_array<std::int8_t>("u8")),
      "key \"u8\": expected element 2 to be an integer from -128 to 127, found array of 3 u8");
  EXPECT_FALSE(metadata.get_array<float>("u8"));
  EXPECT_FALSE(metadata.get_array<bool>("u8"));
}

TEST(Metadata, StringArraysAreViewsInOrder) {
  Metadata metadata;
  const std::string with_nul("a\0b", 3);
  metadata.set_array("s", std::vector<std::string>{"", with_nul, "c"});
  EXPECT_THAT(*metadata.get_array<std::string_view>("s"), ElementsAre("", with_nul, "c"));
  EXPECT_THAT(message_of(metadata.get_array<std::int32_t>("s")),
              HasSubstr("found array of 3 string"));
  EXPECT_FALSE(metadata.get<std::string_view>("s"));
}

TEST(Metadata, ByteArraysAreReadWithoutASign) {
  Metadata metadata;
  metadata.set_array<std::int8_t>("i8", std::array<std::int8_t, 2>{-1, 5});
  metadata.set_array<std::int16_t>("i16", std::array<std::int16_t, 1>{1});
  const auto bytes = metadata.find_bytes("i8");
  ASSERT_TRUE(bytes && *bytes);
  EXPECT_THAT(**bytes, ElementsAre(std::byte{0xff}, std::byte{5}));
  EXPECT_FALSE(metadata.find_bytes("i16"));
  EXPECT_FALSE(metadata.find_bytes("absent").value().has_value());
}

TEST(Metadata, SettingAKeyAgainReplacesItInPlace) {
  Metadata metadata;
  metadata.set("a", std::uint32_t{1});
  metadata.set("b", std::uint32_t{2});
  metadata.set("a", "one");
  ASSERT_EQ(metadata.entries().size(), 2u);
  EXPECT_EQ(metadata.entries()[0].key, "a");
  EXPECT_EQ(metadata.get<std::string_view>("a"), "one");
}

TEST(Metadata, ACloneOutlivesItsOrigin) {
  Metadata copy;
  {
    std::string borrowed = "a long text that would not fit a small string";
    Metadata metadata("file.gguf");
    ASSERT_TRUE(metadata.add_borrowed({"key", std::string_view(borrowed), 7}));
    copy = metadata.clone();
    borrowed.assign(borrowed.size(), '?');
  }
  EXPECT_EQ(copy.get<std::string_view>("key"), "a long text that would not fit a small string");
}

}  // namespace
}  // namespace hearth::formats
