#include "formats/safetensors/reader.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/gguf/scratch_folder.h"
#include "tests/formats/safetensors/file_text.h"

namespace hearth::formats {
namespace {

using ::testing::HasSubstr;

class SafetensorsFolder : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_.file(name), std::ios::binary) << content;
  }
  /// Two files with a tensor of four bytes each, "a" and "b", and one that nobody asks for.
  void write_shards() const {
    write("model-00001-of-00002.safetensors",
          safetensors_file("{" + entry("a", "U8", "[4]", 0, 4) + "}", 4));
    write("model-00002-of-00002.safetensors",
          safetensors_file(
              "{" + entry("b", "U8", "[4]", 0, 4) + "," + entry("extra", "U8", "[1]", 4, 5) + "}",
              5));
  }
  void write_index(const std::string& shard_of_b) const {
    write("model.safetensors.index.json",
          R"({"metadata":{"total_size":8},"weight_map":{"a":"model-00001-of-00002.safetensors",)"
          R"("b":")" +
              shard_of_b + "\"}}");
  }
  [[nodiscard]] std::string error() const {
    const auto model = SafetensorsModel::open(folder_.path());
    return model ? "no error" : model.error().message;
  }

  ScratchFolder folder_;
};

TEST_F(SafetensorsFolder, ASingleFileIsRead) {
  write("model.safetensors", safetensors_file("{" + entry("a", "U8", "[4]", 0, 4) + "}", 4));
  const auto model = SafetensorsModel::open(folder_.path());
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_NE(model->find("a"), nullptr);
  EXPECT_EQ(model->find("a")->data.size(), 4u);
  EXPECT_EQ(model->find("b"), nullptr);
  EXPECT_EQ(model->shard_names().size(), 1u);
}

TEST_F(SafetensorsFolder, ShardsAreJoinedByTheIndex) {
  write_shards();
  write_index("model-00002-of-00002.safetensors");
  const auto model = SafetensorsModel::open(folder_.path());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->tensors().size(), 2u);
  ASSERT_NE(model->find("b"), nullptr);
  EXPECT_THAT(model->shard_name(model->find("b")->shard), HasSubstr("model-00002-of-00002"));
  EXPECT_EQ(model->find("extra"), nullptr);
}

TEST_F(SafetensorsFolder, AFolderWithoutWeightsNamesTheFileThatIsMissing) {
  EXPECT_THAT(error(), HasSubstr("model.safetensors: cannot open"));
}

TEST_F(SafetensorsFolder, AnIndexThatNamesAMissingShardIsRefused) {
  write_shards();
  write_index("model-00003-of-00003.safetensors");
  EXPECT_THAT(error(), HasSubstr("model-00003-of-00003.safetensors: cannot open"));
}

TEST_F(SafetensorsFolder, AnIndexThatPutsATensorIntoAnotherFileIsRefused) {
  write_shards();
  write_index("model-00001-of-00002.safetensors");
  EXPECT_THAT(error(), HasSubstr("model-00001-of-00002.safetensors: expected tensor \"b\""));
}

TEST_F(SafetensorsFolder, AnIndexCannotLeaveItsFolder) {
  write_shards();
  for (const char* name :
       {"../secret.safetensors", "/etc/secret.safetensors", "sub/x.safetensors",
        "..\\\\x.safetensors", "..", ".", "", ".safetensors", "..safetensors", "C:x.safetensors",
        "a\\u0000b.safetensors", "/etc/passwd", "config.json"}) {
    write_index(name);
    EXPECT_THAT(error(), HasSubstr("tensor \"b\": expected the plain name")) << name;
  }
}

TEST_F(SafetensorsFolder, AnIndexOfAnotherFormIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})",
                           R"({"weight_map":{"a":"x","a":"y"}})", R"({"weight_map":{}})"}) {
    write("model.safetensors.index.json", text);
    EXPECT_THAT(error(), HasSubstr("model.safetensors.index.json: ")) << text;
  }
}

TEST_F(SafetensorsFolder, AShardThatIsAFolderIsRefused) {
  std::filesystem::create_directory(folder_.file("model.safetensors"));
  EXPECT_THAT(error(), HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace hearth::formats
