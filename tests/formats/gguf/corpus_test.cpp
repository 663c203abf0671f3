/// Runs the fuzz target on its corpus, so that builds without libFuzzer run it too.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

TEST(GgufCorpus, EveryFileIsReadOrRefused) {
  int n_files = 0;
  const auto folder = std::filesystem::path(HEARTH_TESTS_DIR) / "fuzz/corpus/gguf";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
        0);
    ++n_files;
  }
  EXPECT_GT(n_files, 0);
}

}  // namespace
