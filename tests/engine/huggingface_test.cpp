/// Hugging Face folders run like any other model, and so do the GGUF files made of them.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/runner.h"
#include "engine/step_block.h"
#include "model/convert.h"
#include "tests/engine/engine_backend.h"
#include "tests/formats/gguf/scratch_folder.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

/// Logits of every position of the prompt.
std::vector<float> logits_of(const std::filesystem::path& path,
                             const std::vector<TokenId>& prompt) {
  const auto model = model::Model::open(path);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return {};
  }
  const auto backend = engine_backend(2);
  const auto n = static_cast<std::int64_t>(prompt.size());
  auto runner = Runner::create(
      **model, *backend,
      {.kv_dtype = DType::f32, .n_kv_blocks = 8, .max_rows = n, .max_logit_rows = n});
  if (!runner) {
    ADD_FAILURE() << runner.error().message;
    return {};
  }
  StepBlock step;
  std::vector<std::int32_t> table{0, 1};
  const auto slot = step.add_sequence(table, 0);
  for (std::int64_t position = 0; position < n; ++position) {
    step.add_row(slot, {.token = prompt[static_cast<std::size_t>(position)],
                        .position = position,
                        .wants_logits = true});
  }
  const auto logits = (*runner)->run(step.view());
  EXPECT_TRUE(logits) << logits.error().message;
  return {logits->begin(), logits->end()};
}

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
