/// The hostile files of docs/formats/gguf.md, by number: each was a published defect of some
/// reader. Where the defect lies above the container, the test here says what the container gives
/// the layer above to defend itself.

#include <cstdint>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf/reader.h"
#include "tests/formats/gguf/file_bytes.h"

namespace hearth::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto max_u64 = std::numeric_limits<std::uint64_t>::max();
constexpr auto max_u32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t two_to_62 = std::uint64_t{1} << 62;

/// A file of one tensor with 4 KiB of data.
std::string error_of_tensor(std::initializer_list<std::uint64_t> ne, std::uint32_t type,
                            std::uint64_t offset = 0) {
  return parse_error(FileBytes().header(1, 0).tensor("t", ne, type, offset).pad().zeros(4096));
}

FileBytes file_with_alignment_u32(std::uint32_t alignment) {
  FileBytes file;
  file.header(1, 1).key_number("general.alignment", alignment).tensor("t", {1}, f32_id, 0);
  return file.pad(4096).zeros(64);
}

TEST(GgufHostile, Idea01ADimensionOfZeroIsRefused) {
  EXPECT_THAT(error_of_tensor({0}, f32_id), HasSubstr("expected dimension 0 to be from 1"));
  EXPECT_THAT(error_of_tensor({32, 0, 2}, f32_id), HasSubstr("expected dimension 1 to be from 1"));
  EXPECT_THAT(error_of_tensor({1, 1, 1, 0}, f32_id), HasSubstr("expected dimension 3"));
  EXPECT_THAT(error_of_tensor({std::uint64_t{1} << 63}, f32_id), HasSubstr("9223372036854775808"));
}

TEST(GgufHostile, Idea02AProductOfDimensionsThatOverflowsIsRefused) {
  EXPECT_THAT(error_of_tensor({(std::uint64_t{1} << 63) - 1, 2, 1, 1}, i8_id),
              HasSubstr("fewer than 2^63 elements"));
  EXPECT_THAT(error_of_tensor({1u << 31, 1u << 31, 1u << 31, 1u << 31}, i8_id),
              HasSubstr("fewer than 2^63 elements"));
}

TEST(GgufHostile, Idea03SizesInBytesThatWrapAreRefused) {
  // 2^62 elements fit i64, their 2^64 bytes do not.
  EXPECT_THAT(error_of_tensor({two_to_62}, f32_id), HasSubstr("fewer than 2^63 bytes"));
  EXPECT_THAT(error_of_tensor({two_to_62 / 8, 8}, f32_id), HasSubstr("fewer than 2^63 bytes"));
  EXPECT_THAT(error_of_tensor({(std::uint64_t{1} << 42) + 1, 1u << 20}, q8_0_id),
              HasSubstr("multiple of 32 elements"));
  EXPECT_THAT(error_of_tensor({std::uint64_t{1} << 42, 1u << 20}, q8_0_id),
              HasSubstr("expected 4899916394579099648 bytes"));
}

TEST(GgufHostile, Idea04ATensorCountThatWrapsAnAllocationIsRefused) {
  for (const auto count :
       {max_u64, max_u64 / 24 + 1, std::uint64_t{1} << 63, std::uint64_t{1000}}) {
    FileBytes file;
    file.header(count, 0).zeros(1000);
    EXPECT_THAT(parse_error(file), HasSubstr("number of tensors of at most 40"));
  }
}

TEST(GgufHostile, Idea05SizesNearTheLimitDoNotWrapWhenPadded) {
  EXPECT_THAT(error_of_tensor({(std::uint64_t{1} << 63) - 1}, i8_id),
              HasSubstr("expected 9223372036854775807 bytes"));
  EXPECT_THAT(error_of_tensor({1}, f32_id, max_u64 - 31), HasSubstr("bytes of data in the file"));
}

TEST(GgufHostile, Idea06ExtremeCountsAndLengthsAreRefusedBeforeAllocation) {
  const std::vector<std::uint64_t> extremes{
      max_u64, max_u64 - 7, std::uint64_t{1} << 63, std::uint64_t{1} << 61, std::uint64_t{1} << 32,
      1000};
  for (const auto extreme : extremes) {
    EXPECT_THAT(parse_error(FileBytes().header(0, extreme).zeros(100)),
                HasSubstr("number of keys"));
    EXPECT_THAT(parse_error(FileBytes().header(0, 1).number(extreme).zeros(100)),
                HasSubstr("name of a key"));
    EXPECT_THAT(
        parse_error(
            FileBytes().header(0, 1).key("k", ValueType::string).number(extreme).zeros(100)),
        HasSubstr("a string"));
    for (const auto type : {ValueType::u8, ValueType::f64, ValueType::string}) {
      EXPECT_THAT(parse_error(FileBytes().header(0, 1).key_array("k", type, extreme).zeros(100)),
                  HasSubstr("number of elements"));
    }
    EXPECT_THAT(parse_error(FileBytes().header(1, 0).number(extreme).zeros(100)),
                HasSubstr("name of a tensor"));
  }
}

TEST(GgufHostile, Idea07AnAlignmentOfAnotherTypeOrValueIsRefused) {
  FileBytes text;
  text.header(0, 1).key_string("general.alignment", "32");
  EXPECT_EQ(parse_error(text),
            "model.gguf: key \"general.alignment\" at byte 24: expected an integer from 0 to "
            "4294967295, found string");
  FileBytes wide;
  wide.header(0, 1).key_number<std::uint64_t>("general.alignment", std::uint64_t{1} << 32);
  EXPECT_THAT(parse_error(wide), HasSubstr("found u64 4294967296"));
  for (const std::uint32_t alignment : {0u, 1u, 3u, 4u, 33u, 1u << 21, 1u << 31, max_u32}) {
    EXPECT_THAT(parse_error(file_with_alignment_u32(alignment)),
                HasSubstr("a power of two from 8"));
  }
  EXPECT_EQ(parse_error(file_with_alignment_u32(4096)), "no error");
}

TEST(GgufHostile, Idea08NarrowArraysAreConvertedAndNotReinterpreted) {
  FileBytes bytes;
  bytes.header(0, 2)
      .key_array("tokenizer.ggml.scores", ValueType::u8, 3)
      .raw({"\1\2\3", 3})
      .key_array("tokenizer.ggml.token_type", ValueType::u8, 3)
      .raw({"\1\3\6", 3});
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  const auto scores = file->metadata().find_array<float>("tokenizer.ggml.scores");
  ASSERT_FALSE(scores);
  EXPECT_THAT(scores.error().message, HasSubstr("found array of 3 u8"));
  EXPECT_THAT(*file->metadata().get_array<std::int32_t>("tokenizer.ggml.token_type"),
              ElementsAre(1, 3, 6));
}

TEST(GgufHostile, Idea09DuplicateTokenTextsAreDataToTheContainer) {
  FileBytes bytes;
  bytes.header(0, 1).key_array("tokenizer.ggml.tokens", ValueType::string, 2);
  bytes.string("same").string("same");
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(*file->metadata().get_array<std::string_view>("tokenizer.ggml.tokens"),
              ElementsAre("same", "same"));
}

TEST(GgufHostile, Idea10MalformedByteTokensAreDataToTheContainer) {
  FileBytes bytes;
  bytes.header(0, 1).key_array("tokenizer.ggml.tokens", ValueType::string, 3);
  bytes.string("<0x-1>").string("<0xZZ>").string("\xff\xfe");
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(*file->metadata().get_array<std::string_view>("tokenizer.ggml.tokens"),
              ElementsAre("<0x-1>", "<0xZZ>", "\xff\xfe"));
}

TEST(GgufHostile, Idea11ABlockCountThatDoesNotFitItsUserIsAnError) {
  FileBytes bytes;
  bytes.header(0, 1).key_number<std::uint64_t>("llama.block_count", max_u64);
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(file->metadata().get<std::int32_t>("llama.block_count"));
  EXPECT_FALSE(file->metadata().get<std::int64_t>("llama.block_count"));
}

TEST(GgufHostile, Idea12AStringLongerThanTheCapIsRefusedByItsLengthAlone) {
  FileBytes bytes;
  bytes.header(0, 1).key_array("tokenizer.ggml.tokens", ValueType::string, 1);
  bytes.number(std::uint64_t{1} << 31).zeros(100);
  EXPECT_THAT(parse_error(bytes),
              HasSubstr("at most 67108864 bytes, found a length of 2147483648"));
}

TEST(GgufHostile, Idea13ACharsmapOfAnyLengthComesWithItsBounds) {
  for (const std::size_t length : {0u, 1u, 3u, 4u}) {
    FileBytes bytes;
    bytes.header(0, 1)
        .key_array("tokenizer.ggml.precompiled_charsmap", ValueType::i8, length)
        .raw(std::string(length, '\xff'));
    const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
    ASSERT_TRUE(file) << file.error().message;
    const auto charsmap = file->metadata().find_bytes("tokenizer.ggml.precompiled_charsmap");
    ASSERT_TRUE(charsmap && *charsmap);
    EXPECT_EQ((*charsmap)->size(), length);
  }
}

TEST(GgufHostile, Idea14TensorDataBeyondTheFileIsRefused) {
  EXPECT_EQ(error_of_tensor({1024}, f32_id), "no error");
  EXPECT_EQ(error_of_tensor({1025}, f32_id),
            "model.gguf: tensor \"t\" at byte 24: expected 4100 bytes at offset 0 of the tensor "
            "data, found 4096 bytes of data in the file");
  EXPECT_THAT(error_of_tensor({1024}, f32_id, 32), HasSubstr("bytes at offset 32"));
  EXPECT_THAT(error_of_tensor({1}, f32_id, 4096), HasSubstr("bytes at offset 4096"));
  EXPECT_THAT(error_of_tensor({1}, f32_id, std::uint64_t{1} << 63), HasSubstr("bytes at offset"));
}

TEST(GgufHostile, Idea15ImpossibleSplitKeysAreRefused) {
  const auto shard = [](auto number, auto count, auto n_tensors) {
    FileBytes bytes;
    bytes.header(0, 3)
        .key_number("split.no", number)
        .key_number("split.count", count)
        .key_number("split.tensors.count", n_tensors);
    return parse_error(bytes);
  };
  const auto u16 = [](int value) { return static_cast<std::uint16_t>(value); };
  EXPECT_EQ(shard(u16(0), u16(1), 0), "no error");
  EXPECT_THAT(shard(u16(0), u16(0), 0), HasSubstr("expected 1 to 4096 shards, found 0"));
  EXPECT_THAT(shard(u16(0), u16(65535), 0), HasSubstr("expected 1 to 4096 shards, found 65535"));
  EXPECT_THAT(shard(u16(0), -1, 0), HasSubstr("from 0 to 65535, found i32 -1"));
  EXPECT_THAT(shard(u16(3), u16(4), 0), HasSubstr("expected the first of 4 shards, found shard 4"));
  EXPECT_THAT(shard(u16(0), u16(1), -1), HasSubstr("found i32 -1"));
  EXPECT_THAT(shard(u16(0), u16(1), 7), HasSubstr("expected 7 tensors"));
  // Duplicates across shards: GgufSplit.RefusesATensorThatIsInTwoShards.
}

TEST(GgufHostile, Idea16NestedArraysAreRefusedWithoutRecursion) {
  FileBytes bytes;
  bytes.header(0, 1).key("k", ValueType::array);
  for (int depth = 0; depth < 100000; ++depth) {
    bytes.number(static_cast<std::uint32_t>(ValueType::array)).number<std::uint64_t>(1);
  }
  EXPECT_THAT(parse_error(bytes), HasSubstr("found nested arrays"));
}

TEST(GgufHostile, Idea17AMillionNamesTakeNoQuadraticTime) {
#if defined(HEARTH_SANITIZED)
  constexpr std::uint64_t count = 200'000;  // sanitizers make this slow; quadratic is minutes still
#else
  constexpr std::uint64_t count = 1'000'000;
#endif
  // Long common prefixes make every comparison as slow as it can be in 64 bytes.
  const std::string prefix(50, 'a');
  FileBytes tensors;
  tensors.header(count, 1).key_number<std::uint32_t>("general.alignment", 8);
  FileBytes keys;
  keys.header(0, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto name = prefix + std::to_string(i);
    tensors.tensor(name, {1}, i8_id, 8 * (count - 1 - i));
    keys.key_number<std::uint8_t>(name, 0);
  }
  tensors.pad(8).zeros(8 * count);
  const std::clock_t begin = std::clock();
  EXPECT_EQ(parse_error(tensors), "no error");
  EXPECT_EQ(parse_error(keys), "no error");
  // Quadratic time would be hours; n log n is seconds even with sanitizers.
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 30);

  FileBytes identical;
  identical.header(0, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    identical.key_number<std::uint8_t>(prefix, 0);
  }
  EXPECT_THAT(parse_error(identical), HasSubstr("expected each key once"));
}

TEST(GgufHostile, Idea18SpecialTokenIdsOutOfRangeAreErrorValues) {
  FileBytes bytes;
  bytes.header(0, 1).key_number("tokenizer.ggml.eos_token_id", max_u32);
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata().get<std::uint32_t>("tokenizer.ggml.eos_token_id"), max_u32);
  EXPECT_FALSE(file->metadata().get<std::int32_t>("tokenizer.ggml.eos_token_id"));
}

TEST(GgufHostile, Idea19AHugeVocabSizeAllocatesNothing) {
  FileBytes bytes;
  bytes.header(0, 1).key_number("llama.vocab_size", max_u32);
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata().get<std::uint32_t>("llama.vocab_size"), max_u32);
  EXPECT_FALSE(file->metadata().get<std::int32_t>("llama.vocab_size"));
}

TEST(GgufHostile, Idea20AChatTemplateIsOnlyTextToTheContainer) {
  constexpr std::string_view escape =
      "{{ self.__init__.__globals__.__builtins__.__import__('os').popen('id').read() }}";
  FileBytes bytes;
  bytes.header(0, 1).key_string("tokenizer.chat_template", escape);
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata().get<std::string_view>("tokenizer.chat_template"), escape);
}

TEST(GgufHostile, Idea21EveryTruncationIsRefusedUpToTheEndOfTheTensorData) {
  const auto text = minimal_file().text();
  constexpr std::size_t end_of_data = 128 + 34;
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::vector<char> cut(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    const auto file = GgufFile::parse(std::as_bytes(std::span(cut)), "cut.gguf");
    EXPECT_EQ(file.has_value(), length >= end_of_data) << length;
    if (!file) {
      EXPECT_THAT(file.error().message, HasSubstr("cut.gguf: "));
      EXPECT_THAT(file.error().message, HasSubstr("at byte "));
    }
  }
}

TEST(GgufHostile, Idea21EveryByteOfTheDirectoryMayTakeAnyValue) {
  const auto text = minimal_file().text();
  int n_refused = 0;
  for (std::size_t at = 0; at < 128; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::vector<char> changed(text.begin(), text.end());
      changed[at] = static_cast<char>(value);
      const auto file = GgufFile::parse(std::as_bytes(std::span(changed)), "changed.gguf");
      n_refused += file ? 0 : 1;
    }
  }
  EXPECT_GT(n_refused, 10000);
}

TEST(GgufHostile, Idea22AFileWithoutItsTailPaddingLoads) {
  const auto text = minimal_file().text().substr(0, 128 + 34);
  const auto file = GgufFile::parse(std::as_bytes(std::span(text)), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->find("t.weight")->data.size(), 34u);
}

}  // namespace
}  // namespace hearth::formats
