#include "formats/gguf/reader.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/gguf/file_bytes.h"

namespace hearth::formats {
namespace {

using ::testing::HasSubstr;

/// The bytes of the specification's smallest file, typed in from it and not computed.
constexpr unsigned char specified_minimal_file[128] = {
    0x47, 0x47, 0x55, 0x46, 0x03, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x67, 0x65, 0x6e, 0x65, 0x72, 0x61, 0x6c, 0x2e, 0x61, 0x72, 0x63, 0x68, 0x69, 0x74, 0x65, 0x63,
    0x74, 0x75, 0x72, 0x65, 0x08, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x6c, 0x6c, 0x61, 0x6d, 0x61, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x74, 0x2e, 0x77,
    0x65, 0x69, 0x67, 0x68, 0x74, 0x02, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

TEST(GgufReader, TheMinimalFileHasTheSpecifiedBytes) {
  const auto bytes = minimal_file().text();
  ASSERT_EQ(bytes.size(), 192u);
  EXPECT_EQ(std::memcmp(bytes.data(), specified_minimal_file, sizeof specified_minimal_file), 0);
}

TEST(GgufReader, ReadsTheMinimalFile) {
  const auto bytes = minimal_file();
  const auto file = GgufFile::parse(bytes.bytes(), "minimal.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->alignment(), 32u);
  EXPECT_EQ(file->metadata().get<std::string_view>("general.architecture"), "llama");
  ASSERT_EQ(file->tensors().size(), 1u);
  const GgufTensor* tensor = file->find("t.weight");
  ASSERT_EQ(tensor, &file->tensors()[0]);
  EXPECT_EQ(tensor->dtype, DType{8});
  EXPECT_EQ(tensor->shape, (Shape{1, 32}));
  EXPECT_EQ(tensor->offset, 128u);
  EXPECT_EQ(tensor->data.data(), bytes.bytes().data() + 128) << "tensor data must not be copied";
  EXPECT_EQ(tensor->data.size(), 34u);
  EXPECT_EQ(file->find("absent"), nullptr);
}

TEST(GgufReader, ReadsVersion2) {
  FileBytes file;
  file.header(0, 0, 2);
  EXPECT_EQ(parse_error(file), "no error");
}

TEST(GgufReader, TurnsDimensionsRoundToOutermostFirst) {
  FileBytes bytes;
  bytes.header(2, 0)
      .tensor("experts", {2, 3, 4}, i8_id, 0)
      .tensor("scalar", {}, f32_id, 32)
      .pad()
      .zeros(64);
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->find("experts")->shape, (Shape{4, 3, 2}));
  EXPECT_EQ(file->find("scalar")->shape, Shape{1});
}

TEST(GgufReader, AcceptsTensorsInAnyOrderAndWithGaps) {
  FileBytes bytes;
  bytes.header(2, 0)
      .tensor("second", {4}, f32_id, 96)
      .tensor("first", {4}, f32_id, 0)
      .pad()
      .zeros(112);
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors()[0].name, "second");
  EXPECT_EQ(file->tensors()[1].offset + 96, file->tensors()[0].offset);
}

TEST(GgufReader, HonoursAnAlignmentThatComesAfterOtherKeys) {
  FileBytes bytes;
  bytes.header(2, 2)
      .key_string("general.architecture", "llama")
      .key_number<std::uint64_t>("general.alignment", 8)
      .tensor("a", {1}, f32_id, 0)
      .tensor("b", {1}, f32_id, 8)
      .pad(8)
      .number(1.0f)
      .zeros(4)
      .number(2.0f);
  const auto file = GgufFile::parse(bytes.bytes(), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->alignment(), 8u);
  EXPECT_EQ(load<float>(file->find("b")->data.data()), 2.0f);
}

TEST(GgufReader, RefusesWhatIsNotGguf) {
  EXPECT_THAT(parse_error(FileBytes().raw("GGML and so on")), HasSubstr("found \"GGML\""));
  EXPECT_THAT(parse_error(FileBytes()), HasSubstr("found the end of the file after 0 bytes"));
}

TEST(GgufReader, RefusesOtherVersionsAndBigEndianFiles) {
  for (const std::uint32_t version : {0u, 1u, 4u, 0xffffffffu}) {
    FileBytes file;
    file.header(0, 0, version);
    EXPECT_THAT(parse_error(file),
                HasSubstr("model.gguf: header at byte 4: expected GGUF version 2 "
                          "to 3, found " +
                          std::to_string(version)));
  }
  FileBytes big_endian;
  big_endian.header(0, 0, 0x03000000);
  EXPECT_THAT(parse_error(big_endian), HasSubstr("big-endian"));
  EXPECT_EQ(GgufFile::parse(big_endian.bytes(), "m").error().code, ErrorCode::unsupported);
}

TEST(GgufReader, RefusesKeysThatAreNotPrintableAscii) {
  EXPECT_THAT(parse_error(FileBytes().header(0, 1).key_string("", "x")), HasSubstr("found \"\""));
  EXPECT_THAT(parse_error(FileBytes().header(0, 1).key_string("a\x1b[31m\n", "x")),
              HasSubstr("found \"a\\x1b[31m\\x0a\""));
  EXPECT_THAT(parse_error(FileBytes().header(0, 1).key_string(std::string(65536, 'k'), "x")),
              HasSubstr("at most 65535 bytes"));
  EXPECT_EQ(parse_error(FileBytes().header(0, 1).key_string(std::string(65535, 'k'), "x")),
            "no error");
}

TEST(GgufReader, RefusesADuplicateKeyAndSaysWhereBothAre) {
  FileBytes file;
  file.header(0, 2).key_number<std::uint8_t>("k", 1).key_number<std::uint8_t>("k", 2);
  EXPECT_EQ(parse_error(file),
            "model.gguf: key \"k\" at byte 38: expected each key once, found a second; the first "
            "is at byte 24");
}

TEST(GgufReader, RefusesUnknownValueTypes) {
  FileBytes value;
  value.header(0, 1).string("k").number<std::uint32_t>(13).zeros(16);
  EXPECT_THAT(parse_error(value),
              HasSubstr("key \"k\" at byte 33: expected a value type from 0 to 12"));
  FileBytes element;
  element.header(0, 1).key_array("k", ValueType{0x80000000u}, 1).zeros(16);
  EXPECT_THAT(parse_error(element), HasSubstr("found 2147483648"));
}

TEST(GgufReader, RefusesBoolsOtherThanZeroAndOne) {
  FileBytes scalar;
  scalar.header(0, 1).key("k", ValueType::boolean).number<std::uint8_t>(2);
  EXPECT_THAT(parse_error(scalar), HasSubstr("expected a bool of 0 or 1, found 2"));
  FileBytes array;
  array.header(0, 1).key_array("k", ValueType::boolean, 3).raw({"\0\1\xff", 3});
  EXPECT_THAT(parse_error(array), HasSubstr("found 255 (element 2)"));
}

TEST(GgufReader, RefusesTensorNamesThatAreEmptyTooLongOrRepeated) {
  EXPECT_THAT(parse_error(FileBytes().header(1, 0).tensor("", {1}, f32_id, 0).pad().zeros(32)),
              HasSubstr("expected a name, found an empty one"));
  EXPECT_THAT(parse_error(FileBytes().header(1, 0).tensor(std::string(65, 'n'), {1}, f32_id, 0)),
              HasSubstr("at most 64 bytes, found a length of 65"));
  EXPECT_EQ(
      parse_error(
          FileBytes().header(1, 0).tensor(std::string(64, 'n'), {1}, f32_id, 0).pad().zeros(32)),
      "no error");
  FileBytes twice;
  twice.header(2, 0).tensor("t", {1}, f32_id, 0).tensor("t", {1}, f32_id, 32).pad().zeros(64);
  EXPECT_THAT(parse_error(twice), HasSubstr("tensor \"t\" at byte 57: expected each tensor once"));
}

TEST(GgufReader, RefusesMoreThanFourDimensions) {
  for (const std::uint32_t n_dims : {5u, 0xffffffffu}) {
    FileBytes file;
    file.header(1, 0).string("t").number(n_dims).zeros(64);
    EXPECT_THAT(parse_error(file), HasSubstr("at most 4 dimensions"));
  }
}

TEST(GgufReader, RefusesTensorTypesThatAreRemovedForeignOrUnknown) {
  for (const std::uint32_t type : {4u, 31u, 36u, 43u, 137u, 256u, 256u + q8_0_id, 0x80000000u}) {
    FileBytes file;
    file.header(1, 0).tensor("t", {256}, type, 0).pad().zeros(1024);
    const auto parsed = GgufFile::parse(file.bytes(), "model.gguf");
    ASSERT_FALSE(parsed) << type;
    EXPECT_EQ(parsed.error().code, ErrorCode::unsupported);
    EXPECT_THAT(parsed.error().message, HasSubstr("tensor \"t\""));
    EXPECT_THAT(parsed.error().message, HasSubstr(std::to_string(type)));
  }
}

TEST(GgufReader, RefusesRowsThatEndInsideABlock) {
  FileBytes file;
  file.header(1, 0).tensor("t", {33}, q8_0_id, 0).pad().zeros(128);
  EXPECT_THAT(parse_error(file), HasSubstr("multiple of 32 elements for Q8_0, found 33"));
}

TEST(GgufReader, RefusesUnalignedOffsets) {
  FileBytes file;
  file.header(1, 0).tensor("t", {1}, f32_id, 1).pad().zeros(64);
  EXPECT_THAT(parse_error(file),
              HasSubstr("tensor \"t\" at byte 24: expected a data offset that is a "
                        "multiple of 32, found 1"));
}

TEST(GgufReader, RefusesOverlappingTensors) {
  FileBytes file;
  file.header(2, 0).tensor("b", {9}, f32_id, 32).tensor("a", {9}, f32_id, 0).pad().zeros(128);
  EXPECT_THAT(parse_error(file), HasSubstr("tensor \"b\""));
  EXPECT_THAT(parse_error(file), HasSubstr("after the end of tensor \"a\", found 36 bytes"));
}

TEST(GgufReader, AMissingFileIsNotFound) {
  const auto file = GgufFile::open("no/such/model.gguf");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::not_found);
}

TEST(GgufReader, ReadsEveryPublicVocabulary) {
  const std::filesystem::path folder = std::filesystem::path(HEARTH_SHARED_DATA_DIR) / "vocab";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << folder << " is absent";
  }
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") {
      continue;
    }
    const auto file = GgufFile::open(entry.path());
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->metadata().get<std::string_view>("general.architecture"));
    const auto tokens = file->metadata().get_array<std::string_view>("tokenizer.ggml.tokens");
    const auto types = file->metadata().get_array<std::int32_t>("tokenizer.ggml.token_type");
    ASSERT_TRUE(tokens && types) << entry.path();
    EXPECT_GT(tokens->size(), 30000u);
    EXPECT_EQ(tokens->size(), types->size()) << entry.path();
    ++n_files;
  }
  EXPECT_GT(n_files, 10);
}

}  // namespace
}  // namespace hearth::formats
