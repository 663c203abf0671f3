/// Runs the fuzz targets on their corpora, so that builds without libFuzzer run them too.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

// The build gives each target's entry point a name of its own.
extern "C" int fuzz_gguf(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_safetensors(const std::uint8_t* data, std::size_t size);

namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);

void run_corpus(const char* name, Target target) {
  int n_files = 0;
  const auto folder = std::filesystem::path(HEARTH_TESTS_DIR) / "fuzz/corpus" / name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), 0);
    ++n_files;
  }
  EXPECT_GT(n_files, 0);
}

TEST(GgufCorpus, EveryFileIsReadOrRefused) {
  run_corpus("gguf", fuzz_gguf);
}

TEST(SafetensorsCorpus, EveryFileIsReadOrRefused) {
  run_corpus("safetensors", fuzz_safetensors);
}

}  // namespace
