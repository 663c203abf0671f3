/// Hugging Face folders run like any other model, and so do the GGUF files made of them.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/convert.h"
#include "tests/engine/prompt_logits.h"
#include "tests/formats/gguf/scratch_folder.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

class HuggingFace : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::filesystem::path folder() { return model::golden_folder(GetParam()); }
  model::GoldenModel golden_ = model::load_golden_folder(GetParam());
};

TEST_P(HuggingFace, LogitsAreThoseOfTransformers) {
  const auto logits = logits_of(folder(), golden_.prompt);
  ASSERT_EQ(logits.size(), golden_.logits.size());
  float largest = 0;
  float worst = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    largest = std::max(largest, std::abs(golden_.logits[i]));
    worst = std::max(worst, std::abs(logits[i] - golden_.logits[i]));
  }
  EXPECT_LE(worst / largest, 1e-5f)
      << "largest difference " << worst << ", largest logit " << largest;
}

TEST_P(HuggingFace, TheConvertedFileGivesTheSameBits) {
  const formats::ScratchFolder scratch;
  const auto path = scratch.file("model.gguf");
  const auto checkpoint = model::Checkpoint::open(folder());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const auto report = model::convert_to_gguf(*checkpoint, path, std::nullopt,
                                             [](std::int64_t, std::int64_t) { return true; });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(logits_of(path, golden_.prompt), logits_of(folder(), golden_.prompt));
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, HuggingFace, testing::ValuesIn(model::golden_folder_names()),
                         test_name);

}  // namespace
}  // namespace hearth::engine
