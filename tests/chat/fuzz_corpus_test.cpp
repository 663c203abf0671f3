/// Seeds and past crashes of the template fuzzer, in every build.
#include <cstdint>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/chat/json_value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hearth::chat {
namespace {

TEST(TemplateFuzzCorpus, EndsWithinItsLimitsAndTrustsNothingOfTheConversation) {
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(HEARTH_TESTS_DIR) / "fuzz/corpus/template")) {
    SCOPED_TRACE(entry.path().filename());
    const std::string bytes = read_text(entry.path());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++n_files;
  }
  EXPECT_GE(n_files, 12);
}

}  // namespace
}  // namespace hearth::chat
