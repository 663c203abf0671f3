/// Seeds and past crashes of the fuzzer of JSON files, in every build.

#include <cstdint>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/tokenizer/text_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hearth::model {
namespace {

TEST(HuggingFaceCorpus, EveryFileIsReadOrRefused) {
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(HEARTH_TESTS_DIR) / "fuzz/corpus/huggingface")) {
    SCOPED_TRACE(entry.path().filename());
    const std::string bytes = read_file(entry.path());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++n_files;
  }
  EXPECT_GE(n_files, 7);
}

}  // namespace
}  // namespace hearth::model
