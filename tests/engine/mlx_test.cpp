/// MLX folders compute what mlx-lm does with them.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "engine/runner.h"
#include "model/convert.h"
#include "model/model.h"
#include "tests/engine/prompt_logits.h"
#include "tests/formats/gguf/scratch_folder.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

/// The largest difference, in units of the largest expected value.
float worst_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  float largest = 0;
  float worst = 0;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  }
  return worst / largest;
}

class Mlx : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::filesystem::path folder() {
    return model::golden_mlx_folder(GetParam());
  }
  model::GoldenModel golden_ = model::load_golden_mlx(GetParam());
};

/// With weights widened to F32, so that activations stay floats, as they are in mlx-lm's run.
TEST_P(Mlx, LogitsOfTheDecodedWeightsAreThoseOfMlx) {
  const formats::ScratchFolder scratch;
  const auto path = scratch.file("model.gguf");
  const auto checkpoint = model::Checkpoint::open(folder());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const auto report = model::convert_to_gguf(*checkpoint, path, DType::f32,
                                             [](std::int64_t, std::int64_t) { return true; });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_LE(worst_difference(logits_of(path, golden_.prompt), golden_.logits), 1e-5f);
}

/// Activations become int8 codes, each off by up to 1/254 of the largest in its block: 0.4 to 2.1 %
/// of the largest logit in models as narrow as these. Blocks in a wrong order are off by all of it.
TEST_P(Mlx, LogitsOfTheBlocksAreThoseOfMlxWithinWhatInt8ActivationsCost) {
  EXPECT_LE(worst_difference(logits_of(folder(), golden_.prompt), golden_.logits), 0.03f);
}

/// Blocks of MLX's groups are made for the tiles and not kept beside them, but for the table of
/// tokens, of which rows are read.
TEST_P(Mlx, AnOpenedFolderIsInMemoryOnce) {
  const auto model = model::Model::open(folder());
  ASSERT_TRUE(model) << model.error().message;
  std::int64_t matrix_bytes = 0;
  std::int64_t embed_bytes = 0;
  bool has_made_weights = false;
  for (const auto& weight : (*model)->weights()) {
    has_made_weights |= weight.origin.make != nullptr;
    matrix_bytes += weight.tensor.shape.rank() > 1 ? weight.n_bytes() : 0;
    embed_bytes += weight.name == "token_embd.weight" ? weight.n_bytes() : 0;
  }
  EXPECT_TRUE(has_made_weights);
  const auto backend = *backend::make_cpu_backend({.n_threads = 1});
  const auto runner =
      Runner::create(**model, *backend, {.n_kv_blocks = 1, .max_rows = 16, .max_logit_rows = 1});
  ASSERT_TRUE(runner) << runner.error().message;
  const std::int64_t held = (*runner)->memory().weight_bytes + (*model)->copied_weight_bytes();
  EXPECT_LE(held, matrix_bytes + embed_bytes + matrix_bytes / 4);  // panels that are not full
}

/// Q4_1 has the arithmetic of 4-bit groups, so that a file made of them changes no bit of a logit.
TEST(MlxConversion, AFileOfTheSameWeightsGivesTheSameBits) {
  for (const char* name : {"qwen35moe", "qwen3-mxfp4", "qwen3moe-nvfp4"}) {
    const formats::ScratchFolder scratch;
    const auto path = scratch.file("model.gguf");
    const auto folder = model::golden_mlx_folder(name);
    const auto prompt = model::load_golden_mlx(name).prompt;
    const auto checkpoint = model::Checkpoint::open(folder);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    ASSERT_TRUE(model::convert_to_gguf(*checkpoint, path, std::nullopt,
                                       [](std::int64_t, std::int64_t) { return true; }));
    EXPECT_EQ(logits_of(path, prompt), logits_of(folder, prompt)) << name;
  }
}

std::string name_of_folder(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, Mlx, testing::ValuesIn(model::golden_mlx_names()), name_of_folder);

}  // namespace
}  // namespace hearth::engine
