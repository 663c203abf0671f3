/// Runs the fuzz target on its corpus, so that builds without libFuzzer run it too.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/tokenizer/text_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hearth {
namespace {

TEST(TokenizerCorpus, EveryFileIsATokenizerOrRefused) {
  int n_files = 0;
  const auto folder = std::filesystem::path(HEARTH_TESTS_DIR) / "fuzz/corpus/tokenizer";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    const std::string bytes = read_file(entry.path());
    EXPECT_EQ(
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
        0);
    ++n_files;
  }
  EXPECT_GT(n_files, 0);
}

}  // namespace
}  // namespace hearth
