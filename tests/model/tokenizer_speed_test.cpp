/// The promise of speed, where no sanitizer slows the build: at least 10 MB/s of English text on
/// one thread.

#include <ctime>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "formats/gguf/reader.h"
#include "model/tokenizer_from_gguf.h"
#include "tests/tokenizer/text_list.h"

namespace hearth::model {
namespace {

/// The documentation of this repository, repeated.
std::string english_text(std::size_t n_bytes) {
  std::string documents;
  const auto folder = std::filesystem::path(HEARTH_TESTS_DIR) / "../docs";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".md") {
      documents += read_file(entry.path());
    }
  }
  std::string text;
  while (!documents.empty() && text.size() < n_bytes) {
    text += documents;
  }
  return text;
}

TEST(TokenizerSpeed, BytePairReadsTenMegabytesOfEnglishPerSecond) {
#if defined(HEARTH_SANITIZED)
  GTEST_SKIP() << "sanitizers make this slow";
#endif
  const std::string path = HEARTH_SHARED_DATA_DIR "/vocab/ggml-vocab-gpt-2.gguf";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is not there";
  }
  const auto file = formats::GgufFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  const auto tokenizer = tokenizer_from_gguf(file->metadata()).value();
  const std::string text = english_text(4'000'000);
  const std::clock_t start = std::clock();
  const auto tokens = tokenizer.encode(text);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_TRUE(tokens);
  const double megabytes_per_second = static_cast<double>(text.size()) / 1e6 / seconds;
  RecordProperty("megabytes_per_second", std::to_string(megabytes_per_second));
  EXPECT_GT(megabytes_per_second, 10);
}

}  // namespace
}  // namespace hearth::model
