#include "formats/gguf/writer.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf/reader.h"
#include "tests/formats/gguf/file_bytes.h"
#include "tests/formats/gguf/scratch_folder.h"

namespace hearth::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DType q8_0{8};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Metadata metadata_of(std::string_view architecture) {
  Metadata metadata;
  metadata.set("general.architecture", architecture);
  return metadata;
}

/// An f32 tensor that counts up from 0 and owns its data.
TensorToWrite counting_tensor(std::string name, const Shape& shape) {
  return {.name = std::move(name),
          .dtype = DType::f32,
          .shape = shape,
          .produce = [n = static_cast<std::size_t>(shape.elements())](const ByteSink& sink) {
            std::vector<float> values(n);
            std::iota(values.begin(), values.end(), 0.0f);
            return sink(std::as_bytes(std::span(values)));
          }};
}

std::string error_of_write(const Metadata& metadata, const std::vector<TensorToWrite>& tensors) {
  const ScratchFolder folder;
  const auto written = write_gguf(folder.file("m.gguf"), metadata, tensors);
  EXPECT_EQ(folder.n_files(), written ? 1u : 0u) << "a failed write must leave nothing behind";
  return written ? "no error" : written.error().message;
}

TEST(GgufWriter, WritesTheLayoutOfTheMinimalFileByteForByte) {
  const auto source = minimal_file();
  const ScratchFolder folder;
  const auto metadata = metadata_of("llama");
  const std::vector tensors{
      tensor_to_write("t.weight", {q8_0, {1, 32}, source.bytes().subspan(128, 34)})};
  ASSERT_TRUE(write_gguf(folder.file("m.gguf"), metadata, tensors));

  // The writer adds the version of the block layouts and stores no unit dimensions.
  FileBytes wanted;
  wanted.header(1, 2)
      .key_string("general.architecture", "llama")
      .key_number<std::uint32_t>("general.quantization_version", 2)
      .tensor("t.weight", {32}, q8_0_id, 0)
      .pad()
      .raw(source.text().substr(128));
  EXPECT_EQ(contents(folder.file("m.gguf")), wanted.text());
}

TEST(GgufWriter, PutsTheArchitectureFirstAndDropsSplitKeys) {
  const ScratchFolder folder;
  Metadata metadata;
  metadata.set("b", std::uint32_t{1});
  metadata.set("split.count", std::uint16_t{9});
  metadata.set("general.architecture", "llama");
  metadata.set("a", std::uint32_t{2});
  ASSERT_TRUE(write_gguf(folder.file("m.gguf"), metadata, {}));
  const auto file = GgufFile::open(folder.file("m.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  std::vector<std::string_view> keys;
  for (const auto& entry : file->metadata().entries()) {
    keys.push_back(entry.key);
  }
  EXPECT_THAT(keys, ElementsAre("general.architecture", "b", "a"));
}

TEST(GgufWriter, PadsEveryTensorToTheAlignmentOfTheMetadata) {
  const ScratchFolder folder;
  auto metadata = metadata_of("llama");
  metadata.set("general.alignment", std::uint32_t{8192});
  const std::vector tensors{counting_tensor("a", {3}), counting_tensor("b", {2, 1, 5})};
  ASSERT_TRUE(write_gguf(folder.file("m.gguf"), metadata, tensors));
  const auto file = GgufFile::open(folder.file("m.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->find("a")->offset, 8192u);
  EXPECT_EQ(file->find("b")->offset, 16384u);
  EXPECT_EQ(file->find("b")->shape, (Shape{2, 1, 5}));
  EXPECT_EQ(contents(folder.file("m.gguf")).size(), 3u * 8192);
}

TEST(GgufWriter, DropsOuterUnitDimensionsButKeepsOne) {
  const ScratchFolder folder;
  const std::vector tensors{counting_tensor("row", {1, 1, 7}), counting_tensor("one", {1, 1})};
  ASSERT_TRUE(write_gguf(folder.file("m.gguf"), metadata_of("llama"), tensors));
  const auto file = GgufFile::open(folder.file("m.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->find("row")->shape, Shape{7});
  EXPECT_EQ(file->find("one")->shape, Shape{1});
}

TEST(GgufWriter, SplitsByTensorBytesAndTheReaderJoinsThem) {
  const ScratchFolder folder;
  auto metadata = metadata_of("llama");
  metadata.set("general.alignment", std::uint32_t{64});
  const std::vector tensors{counting_tensor("a", {4}), counting_tensor("b", {4}),
                            counting_tensor("large", {100}), counting_tensor("c", {8})};
  const auto paths = write_gguf(folder.file("m.gguf"), metadata, tensors, {.max_shard_bytes = 32});
  ASSERT_TRUE(paths) << paths.error().message;
  EXPECT_THAT(*paths, ElementsAre(folder.file("m-00001-of-00003.gguf"),
                                  folder.file("m-00002-of-00003.gguf"),
                                  folder.file("m-00003-of-00003.gguf")));
  const auto file = GgufFile::open(paths->front());
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 4u);
  EXPECT_EQ(file->find("b")->shard, 0u);
  EXPECT_EQ(file->find("large")->shard, 1u);
  EXPECT_EQ(load<float>(file->find("large")->data.data(), 99 * sizeof(float)), 99.0f);
  EXPECT_EQ(file->find("c")->shard, 2u);
}

TEST(GgufWriter, WritesOneFileWhenEverythingFits) {
  const ScratchFolder folder;
  const std::vector tensors{counting_tensor("a", {4})};
  const auto paths =
      write_gguf(folder.file("m.gguf"), metadata_of("x"), tensors, {.max_shard_bytes = 16});
  ASSERT_TRUE(paths) << paths.error().message;
  EXPECT_THAT(*paths, ElementsAre(folder.file("m.gguf")));
}

TEST(GgufWriter, RefusesWhatNoReaderWouldAccept) {
  const auto metadata = metadata_of("llama");
  const auto tensor = [](std::string name, DType dtype, const Shape& shape) {
    return std::vector{tensor_to_write(std::move(name), {dtype, shape, {}})};
  };
  EXPECT_THAT(error_of_write(metadata, tensor("", DType::f32, {1})), HasSubstr("1 to 63 bytes"));
  EXPECT_THAT(error_of_write(metadata, tensor(std::string(64, 'n'), DType::f32, {1})),
              HasSubstr("1 to 63 bytes, found 64"));
  EXPECT_THAT(error_of_write(metadata, tensor("t", DType{31}, {1})), HasSubstr("a known type"));
  EXPECT_THAT(error_of_write(metadata, tensor("t", DType::f32, {})),
              HasSubstr("1 to 4 dimensions"));
  EXPECT_THAT(error_of_write(metadata, tensor("t", DType::f32, {3, 0})), HasSubstr("at least 1"));
  EXPECT_THAT(error_of_write(metadata, tensor("t", q8_0, {2, 33})), HasSubstr("whole blocks"));
  EXPECT_THAT(error_of_write(metadata, {counting_tensor("t", {1}), counting_tensor("t", {2})}),
              HasSubstr("expected each name once"));
  auto bad_alignment = metadata_of("llama");
  bad_alignment.set("general.alignment", std::uint32_t{48});
  EXPECT_THAT(error_of_write(bad_alignment, {}), HasSubstr("a power of two"));
  auto bad_key = metadata_of("llama");
  bad_key.set("sch\xc3\xb6n", true);
  EXPECT_THAT(error_of_write(bad_key, {}), HasSubstr("printable ASCII"));
}

TEST(GgufWriter, RefusesAProducerOfTooFewOrTooManyBytes) {
  const auto producing = [](std::size_t n_bytes) {
    return std::vector{TensorToWrite{.name = "t",
                                     .dtype = DType::f32,
                                     .shape = {4},
                                     .produce = [n_bytes](const ByteSink& sink) -> Result<void> {
                                       const std::vector<std::byte> half(n_bytes / 2);
                                       HEARTH_TRY(sink(half));
                                       return sink(half);
                                     }}};
  };
  const auto metadata = metadata_of("llama");
  EXPECT_EQ(error_of_write(metadata, producing(16)), "no error");
  EXPECT_THAT(error_of_write(metadata, producing(14)), HasSubstr("expected 16 bytes, found 14"));
  EXPECT_THAT(error_of_write(metadata, producing(18)),
              HasSubstr("expected 16 bytes, found 18 or more"));
}

TEST(GgufWriter, PassesOnTheErrorOfAProducerAndKeepsTheOldFile) {
  const ScratchFolder folder;
  std::ofstream(folder.file("m.gguf")) << "old";
  const Error full{ErrorCode::io, "no more data"};
  const std::vector tensors{
      TensorToWrite{.name = "t",
                    .dtype = DType::f32,
                    .shape = {4},
                    .produce = [&](const ByteSink&) -> Result<void> { return Failure(full); }}};
  const auto written = write_gguf(folder.file("m.gguf"), metadata_of("llama"), tensors);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error(), full);
  EXPECT_EQ(contents(folder.file("m.gguf")), "old");
  EXPECT_EQ(folder.n_files(), 1u);
}

TEST(GgufWriter, AFolderThatDoesNotExistIsAnIoError) {
  const auto written = write_gguf("no/such/folder/m.gguf", metadata_of("llama"), {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace hearth::formats
