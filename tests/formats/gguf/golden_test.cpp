/// Files of the reference writer, see tests/golden/gguf/PROVENANCE.md.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/half.h"
#include "formats/gguf/reader.h"
#include "quant/registry.h"

namespace hearth::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<GgufFile> open_golden(const std::string& name) {
  return GgufFile::open(std::filesystem::path(HEARTH_TESTS_DIR) / "golden/gguf" / name);
}

template <class T>
std::vector<T> elements_of(const GgufTensor& tensor) {
  std::vector<T> elements(tensor.data.size() / sizeof(T));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = load<T>(tensor.data.data(), i * sizeof(T));
  }
  return elements;
}

template <class T>
std::vector<T> counting(std::size_t n) {
  std::vector<T> values(n);
  std::iota(values.begin(), values.end(), T{});
  return values;
}

void expect_recipe_tensors(const GgufFile& file) {
  ASSERT_EQ(file.tensors().size(), 4u);
  const auto& vector = *file.find("vector");
  EXPECT_EQ(vector.dtype, DType::f32);
  EXPECT_EQ(vector.shape, Shape{5});
  EXPECT_EQ(elements_of<float>(vector), counting<float>(5));

  const auto& matrix = *file.find("matrix");
  EXPECT_EQ(matrix.dtype, DType::f16);
  EXPECT_EQ(matrix.shape, (Shape{3, 4}));
  EXPECT_EQ(to_float(elements_of<Half>(matrix)[11]), 11.0f);

  const auto& experts = *file.find("experts");
  EXPECT_EQ(experts.dtype, DType::i32);
  EXPECT_EQ(experts.shape, (Shape{2, 3, 4}));
  EXPECT_EQ(elements_of<std::int32_t>(experts), counting<std::int32_t>(24));

  const auto& quantized = *file.find("quantized");
  EXPECT_EQ(quant::name(quantized.dtype), "Q8_0");
  EXPECT_EQ(quantized.shape, (Shape{2, 3, 32}));
  std::vector<float> weights(192);
  quant::decode(quantized.dtype, quantized.data, weights);
  EXPECT_NEAR(weights[191], 191.0f, 1.0f);
}

TEST(GgufGolden, EveryValueTypeOfTheReferenceWriterIsRead) {
  const auto file = open_golden("sample.gguf");
  ASSERT_TRUE(file) << file.error().message;
  const auto& metadata = file->metadata();
  EXPECT_EQ(metadata.get<std::string_view>("general.architecture"), "test");
  EXPECT_EQ(metadata.get<std::uint8_t>("t.u8"), 200);
  EXPECT_EQ(metadata.get<std::int8_t>("t.i8"), -100);
  EXPECT_EQ(metadata.get<std::uint16_t>("t.u16"), 60000);
  EXPECT_EQ(metadata.get<std::int16_t>("t.i16"), -30000);
  EXPECT_EQ(metadata.get<std::uint32_t>("t.u32"), 4000000000u);
  EXPECT_EQ(metadata.get<std::int32_t>("t.i32"), -2000000000);
  EXPECT_EQ(metadata.get<float>("t.f32"), 0.15625f);
  EXPECT_EQ(metadata.get<bool>("t.bool"), true);
  EXPECT_EQ(metadata.get<std::string_view>("t.string"), "Grüße, 世界");
  EXPECT_EQ(metadata.get<std::uint64_t>("t.u64"), (std::uint64_t{1} << 63) + 5);
  EXPECT_EQ(metadata.get<std::int64_t>("t.i64"), -(std::int64_t{1} << 62));
  EXPECT_EQ(metadata.get<double>("t.f64"), 0.1);
  EXPECT_THAT(*metadata.get_array<std::string_view>("t.strings"), ElementsAre("", "a", "日本"));
  EXPECT_THAT(*metadata.get_array<std::int32_t>("t.i32s"), ElementsAre(1, -2, 3));
  EXPECT_THAT(*metadata.get_array<float>("t.f32s"), ElementsAre(0.5f, -0.25f));
  EXPECT_THAT(*metadata.get_array<bool>("t.bools"), ElementsAre(true, false));
  EXPECT_THAT(*metadata.get_array<std::int32_t>("t.u8s"), ElementsAre(1, 2, 255));
}

TEST(GgufGolden, TensorsOfTheReferenceWriterAreRead) {
  const auto file = open_golden("sample.gguf");
  ASSERT_TRUE(file) << file.error().message;
  expect_recipe_tensors(*file);
}

TEST(GgufGolden, EveryTruncationIsRefusedUpToTheEndOfTheTensorData) {
  const auto file = open_golden("sample.gguf");
  ASSERT_TRUE(file) << file.error().message;
  const auto& last = file->tensors().back();
  const Bytes whole(file->tensors()[0].data.data() - file->tensors()[0].offset,
                    last.offset + last.data.size());
  EXPECT_TRUE(GgufFile::parse(whole, "whole.gguf"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    // A copy of its own, so that the sanitizer sees a read past the end.
    const std::vector<std::byte> cut(whole.begin(),
                                     whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(GgufFile::parse(cut, "cut.gguf")) << length;
  }
}

TEST(GgufGolden, AnotherAlignmentIsHonoured) {
  const auto file = open_golden("aligned.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->alignment(), 128u);
  EXPECT_TRUE(std::all_of(file->tensors().begin(), file->tensors().end(),
                          [](const auto& tensor) { return tensor.offset % 128 == 0; }));
  expect_recipe_tensors(*file);
}

TEST(GgufGolden, ASplitModelIsJoined) {
  const auto file = open_golden("split-00001-of-00002.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->n_shards(), 2u);
  expect_recipe_tensors(*file);
}

TEST(GgufGolden, ABigEndianFileIsRefusedAsSuch) {
  const auto file = open_golden("big-endian.gguf");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::unsupported);
  EXPECT_THAT(file.error().message, HasSubstr("big-endian"));
}

}  // namespace
}  // namespace hearth::formats
