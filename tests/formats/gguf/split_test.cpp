#include "formats/gguf/split.h"

#include <cstdint>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf/reader.h"
#include "tests/formats/gguf/file_bytes.h"
#include "tests/formats/gguf/scratch_folder.h"

namespace hearth::formats {
namespace {

using ::testing::HasSubstr;

/// A shard with one f32 tensor of one element; `number` from 0.
FileBytes shard(int number, int count, int n_tensors, std::string_view tensor_name) {
  FileBytes bytes;
  bytes.header(1, 3)
      .key_number("split.no", static_cast<std::uint16_t>(number))
      .key_number("split.count", static_cast<std::uint16_t>(count))
      .key_number("split.tensors.count", n_tensors)
      .tensor(tensor_name, {1}, f32_id, 0)
      .pad()
      .number(static_cast<float>(number));
  return bytes;
}

class GgufSplit : public ::testing::Test {
 protected:
  void write(const std::string& name, const FileBytes& bytes) const {
    std::ofstream(folder_.file(name), std::ios::binary) << bytes.text();
  }

  [[nodiscard]] Result<GgufFile> open(const std::string& name = "m-00001-of-00002.gguf") const {
    return GgufFile::open(folder_.file(name));
  }

  [[nodiscard]] std::string error_of_open(const std::string& name = "m-00001-of-00002.gguf") const {
    const auto file = open(name);
    return file ? "no error" : file.error().message;
  }

 private:
  ScratchFolder folder_;
};

TEST_F(GgufSplit, JoinsTheTensorsOfAllShards) {
  write("m-00001-of-00002.gguf", shard(0, 2, 2, "a"));
  write("m-00002-of-00002.gguf", shard(1, 2, 2, "b"));
  const auto file = open();
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(load<float>(file->find("a")->data.data()), 0.0f);
  EXPECT_EQ(load<float>(file->find("b")->data.data()), 1.0f);
  EXPECT_THAT(file->shard_name(file->find("b")->shard), HasSubstr("m-00002-of-00002.gguf"));
  EXPECT_EQ(file->metadata().get<int>("split.tensors.count"), 2);
}

TEST_F(GgufSplit, RefusesAShardThatIsNotTheFirst) {
  write("m-00002-of-00002.gguf", shard(1, 2, 2, "b"));
  EXPECT_THAT(error_of_open("m-00002-of-00002.gguf"),
              HasSubstr("found shard 2; open the file that ends in -00001-of-00002.gguf"));
}

TEST_F(GgufSplit, RefusesANameThatDoesNotFitTheCount) {
  write("m.gguf", shard(0, 2, 2, "a"));
  EXPECT_THAT(error_of_open("m.gguf"), HasSubstr("to end in -00001-of-00002.gguf"));
}

TEST_F(GgufSplit, RefusesAMissingShard) {
  write("m-00001-of-00002.gguf", shard(0, 2, 2, "a"));
  const auto file = open();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::not_found);
  EXPECT_THAT(file.error().message, HasSubstr("m-00002-of-00002.gguf"));
}

TEST_F(GgufSplit, RefusesShardsThatDisagree) {
  write("m-00001-of-00002.gguf", shard(0, 2, 2, "a"));
  write("m-00002-of-00002.gguf", shard(0, 2, 2, "b"));
  EXPECT_THAT(error_of_open(), HasSubstr("expected shard 2 of 2 with 2 tensors in all, found "
                                         "shard 1 of 2 with 2"));
  write("m-00002-of-00002.gguf", shard(1, 3, 2, "b"));
  EXPECT_THAT(error_of_open(), HasSubstr("found shard 2 of 3"));
  write("m-00002-of-00002.gguf", minimal_file());
  EXPECT_THAT(error_of_open(), HasSubstr("m-00002-of-00002.gguf: expected shard 2 of 2"));
}

TEST_F(GgufSplit, RefusesATensorThatIsInTwoShards) {
  write("m-00001-of-00002.gguf", shard(0, 2, 2, "same"));
  write("m-00002-of-00002.gguf", shard(1, 2, 2, "same"));
  EXPECT_THAT(error_of_open(), HasSubstr("tensor \"same\" at byte"));
  EXPECT_THAT(error_of_open(), HasSubstr("expected each tensor in one shard, found it also in"));
}

TEST_F(GgufSplit, RefusesAnotherTotalThanPromised) {
  write("m-00001-of-00002.gguf", shard(0, 2, 3, "a"));
  write("m-00002-of-00002.gguf", shard(1, 2, 3, "b"));
  EXPECT_THAT(error_of_open(), HasSubstr("expected 3 tensors in 2 shards"));
}

TEST_F(GgufSplit, AShardInMemoryIsNoWholeModel) {
  const auto bytes = shard(0, 2, 2, "a");
  const auto file = GgufFile::parse(bytes.bytes(), "m");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::invalid_argument);
}

TEST(GgufSplitNames, CountFromOneWithFiveDigits) {
  EXPECT_EQ(shard_name("dir/m", 0, 12), "dir/m-00001-of-00012.gguf");
  EXPECT_EQ(shard_prefix("dir/m-00001-of-00012.gguf", 12)->string(), "dir/m");
  EXPECT_FALSE(shard_prefix("dir/m-00001-of-00012.gguf", 11));
}

}  // namespace
}  // namespace hearth::formats
