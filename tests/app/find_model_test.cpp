#include "find_model.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::app {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class FindModel : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(cache_);
    fs::create_directories(cache_);
    for (const char* name : {"SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf",
                             "gemma-3-1b.gguf", "fetch-x.part"}) {
      std::ofstream(cache_ / name) << "x";
    }
  }
  void TearDown() override { fs::remove_all(cache_); }

  // One folder for each test: they run at the same time.
  fs::path cache_ =
      fs::path(testing::TempDir()) /
      (std::string("find_model_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(FindModel, TakesAFileThatExistsAsItIs) {
  const auto path = cache_ / "fetch-x.part";
  EXPECT_EQ(find_model(path.string(), {}), path);
}

TEST_F(FindModel, TakesAPathWithFoldersAsItIs) {
  EXPECT_EQ(find_model("no/such/smollm2", cache_), fs::path("no/such/smollm2"));
}

TEST_F(FindModel, FindsACachedFileByTheBeginningOfItsName) {
  EXPECT_EQ(find_model("smollm2", cache_), cache_ / "SmolLM2-135M-Instruct.Q4_1.gguf");
  EXPECT_EQ(find_model("gemma3-270M", cache_), cache_ / "gemma-3-270m-q4_k_m.gguf");
  EXPECT_EQ(find_model("gemma-3-1b.gguf", cache_), cache_ / "gemma-3-1b.gguf");
}

TEST_F(FindModel, RefusesANameThatSeveralFilesHave) {
  const auto found = find_model("gemma3", cache_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("'gemma3'"), HasSubstr("gemma-3-1b.gguf"),
                                           HasSubstr("gemma-3-270m-q4_k_m.gguf")));
}

TEST_F(FindModel, SaysWhatIsThereWhenNothingMatches) {
  for (const char* name : {"qwen", "fetch", "...", ""}) {
    const auto found = find_model(name, cache_);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code, ErrorCode::not_found);
    EXPECT_THAT(found.error().message,
                AllOf(HasSubstr("SmolLM2-135M-Instruct.Q4_1.gguf"), HasSubstr(cache_.string())));
  }
}

TEST_F(FindModel, SaysThatAMissingCacheHasNothing) {
  const auto found = find_model("qwen", cache_ / "missing");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("nothing"));
}

TEST_F(FindModel, SaysThatThereIsNoCacheWithoutAHome) {
  const auto found = find_model("qwen", {});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("$HOME"));
}

TEST_F(FindModel, LooksWhereTheRunScriptKeepsModels) {
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(model_cache(), "/somewhere/hearth/models");
  setenv("XDG_CACHE_HOME", "", 1);
  setenv("HOME", "/people/me", 1);
  EXPECT_EQ(model_cache(), "/people/me/.cache/hearth/models");
}

TEST_F(FindModel, KeepsTilesOfEachFileInAFileOfItsOwn) {
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  const auto file = tile_cache_file("a/model.gguf").value();
  EXPECT_EQ(file.parent_path(), "/somewhere/hearth/tiles");
  EXPECT_THAT(file.filename().string(), testing::StartsWith("model.gguf-"));
  EXPECT_EQ(file, tile_cache_file(fs::absolute("a/model.gguf")).value());
  EXPECT_NE(file, tile_cache_file("b/model.gguf").value());
}

}  // namespace
}  // namespace hearth::app
