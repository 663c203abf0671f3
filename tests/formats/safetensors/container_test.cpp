#include "formats/safetensors/container.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/safetensors/file_text.h"

namespace hearth::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Safetensors, ReadsTensorsMetadataAndPadding) {
  const auto file =
      safetensors_file(R"({"__metadata__":{"format":"pt"},)" + entry("b", "BF16", "[2,3]", 4, 16) +
                           "," + entry("a", "F32", "[]", 0, 4) + "}   ",
                       16);
  const auto read = parse_safetensors(bytes_of(file), "model.safetensors");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->metadata, ElementsAre(Pair("format", "pt")));
  ASSERT_EQ(read->tensors.size(), 2u);
  const auto& a = read->tensors[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.type, ElementType::f32);
  EXPECT_THAT(a.shape, IsEmpty());
  EXPECT_EQ(a.data.size(), 4u);
  const auto& b = read->tensors[read->by_name.at("b")];
  EXPECT_EQ(b.type, ElementType::bf16);
  EXPECT_THAT(b.shape, ElementsAre(2, 3));
  EXPECT_EQ(b.data.front(), std::byte{4});
  EXPECT_EQ(b.data.data(), bytes_of(file).data() + b.offset);
}

TEST(Safetensors, AFileWithoutTensorsIsEmpty) {
  const auto file = safetensors_file("{}", 0);
  const auto read = parse_safetensors(bytes_of(file), "model.safetensors");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->tensors, IsEmpty());
}

TEST(Safetensors, EmptyTensorsMayStandAnywhere) {
  const auto file = safetensors_file("{" + entry("z", "U8", "[3]", 0, 3) + "," +
                                         entry("a", "F32", "[0,7]", 0, 0) + "," +
                                         entry("m", "F32", "[0]", 3, 3) + "}",
                                     3);
  const auto read = parse_safetensors(bytes_of(file), "model.safetensors");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->tensors[read->by_name.at("a")].data, IsEmpty());
}

TEST(Safetensors, DataAtAnOddByteIsRead) {
  const auto file = safetensors_file("{" + entry("x", "F32", "[1]", 0, 4) + "} ", 4);
  const auto read = parse_safetensors(bytes_of(file), "model.safetensors");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(load<std::uint32_t>(read->tensors[0].data.data()), 0x03020100u);
}

TEST(Safetensors, EveryElementTypeHasItsNameOnce) {
  std::set<std::string_view> names;
  for (const auto& type : all_element_types()) {
    EXPECT_TRUE(names.insert(type.name).second) << type.name;
    EXPECT_EQ(find_element_type(type.name), &info(type.type));
    const auto file = safetensors_file(
        "{" + entry("x", type.name, "[2]", 0, 2 * type.n_bytes) + "}", 2 * type.n_bytes);
    EXPECT_TRUE(parse_safetensors(bytes_of(file), "model.safetensors")) << type.name;
  }
}

}  // namespace
}  // namespace hearth::formats
