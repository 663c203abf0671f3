/// Greedy sequences on a device that is given the next step before the host has the tokens of the
/// last. The emulator does its work as late as it may, so that what is changed too early shows.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "formats/gguf/writer.h"
#include "tests/backend/gpu/backend_under_test.h"
#include "tests/engine/drain.h"
#include "tests/engine/engine_backend.h"
#include "tests/model/golden_model.h"
#include "tests/model/model_file.h"

namespace hearth::engine {
namespace {

using backend::gpu::emulator::EmulatorDeviceOptions;
using backend::gpu::emulator::open_emulator_device;

class AheadTest : public testing::TestWithParam<std::string> {
 protected:
  AheadTest()
      : golden_(model::load_golden_model(GetParam())),
        model_(*model::Model::open(golden_.gguf_path)) {
    use_emulator({.is_late = true});
  }

  void use_emulator(const EmulatorDeviceOptions& options) {
    auto device = open_emulator_device(options);
    device_ = device.get();
    backend_ = backend::make_gpu_backend(std::move(device));
  }

  std::unique_ptr<Engine> engine(const EngineOptions& options = {.context = 64,
                                                                 .max_rows = 32}) const {
    auto created = Engine::create(*model_, *backend_, options);
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return std::move(*created);
  }

  /// The golden prompt without its first tokens.
  Request request(std::size_t n_left_out, std::int64_t max_tokens) const {
    return {.prompt = {golden_.prompt.begin() + static_cast<std::ptrdiff_t>(n_left_out),
                       golden_.prompt.end()},
            .sampling = {.temperature = 0},
            .max_tokens = max_tokens,
            .ignore_end_of_generation = true};
  }
  std::vector<TokenId> golden(std::size_t n) const {
    return {golden_.greedy.begin(), golden_.greedy.begin() + static_cast<std::ptrdiff_t>(n)};
  }
  /// What the sampler chooses from all logits, on the processor.
  std::vector<TokenId> sampled(Request request) const {
    request.sampling.logit_bias = {{TokenId{1}, 0.0}};
    const auto backend = engine_backend(1);
    return answer(**Engine::create(*model_, *backend, {.context = 64}), request);
  }

  std::int64_t n_submissions() const { return device_->counters().submissions; }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
  backend::gpu::Device* device_ = nullptr;
  std::unique_ptr<backend::Backend> backend_;
};

TEST_P(AheadTest, TheDeviceIsAStepAheadAndComputesNoneInVain) {
  const auto own = engine();
  auto stream = own->submit(request(0, 5));
  const auto before = n_submissions();
  std::vector<TokenId> tokens;
  for (const std::int64_t n_steps : {1, 3, 4, 5, 5}) {
    tokens.push_back(*stream->next().value());
    EXPECT_EQ(n_submissions() - before, n_steps) << tokens.size() << " tokens";
  }
  EXPECT_EQ(tokens, golden(5));
  EXPECT_EQ(stream->next().value(), std::nullopt);
  EXPECT_EQ(n_submissions() - before, 5);
}

TEST_P(AheadTest, SequencesThatComeAndGoHaveTheTokensThatTheyHaveAlone) {
  const auto shared = engine({.context = 64, .max_sequences = 3, .max_rows = 13});
  auto first = shared->submit(request(0, 12));
  auto second = shared->submit(request(3, 6));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(second->next().value());
  }
  auto third = shared->submit(request(7, 9));
  auto fourth = shared->submit(request(11, 9));  // waits for the end of the second
  EXPECT_EQ(drain(*third), sampled(request(7, 9)));
  EXPECT_EQ(drain(*fourth), sampled(request(11, 9)));
  EXPECT_EQ(drain(*first), golden(12));
  EXPECT_EQ(drain(*second).size(), 3U);
}

TEST_P(AheadTest, AStreamThatLeavesDoesNotDisturbWhoTakesItsPlace) {
  const auto own = engine();
  const auto free_blocks = own->n_free_blocks();
  for (int i = 0; i < 2; ++i) {
    auto stream = own->submit(request(2, 20));
    for (int n = 0; n < 4; ++n) {
      ASSERT_TRUE(stream->next().value());
    }
  }
  EXPECT_EQ(own->n_free_blocks(), free_blocks);
  EXPECT_FALSE(*own->step());
  EXPECT_EQ(answer(*own, request(0, 10)), golden(10));
}

TEST_P(AheadTest, OfTwoStreamsOneMayLeave) {
  const auto own = engine({.context = 64, .max_sequences = 2, .max_rows = 32});
  auto stays = own->submit(request(0, 12));
  {
    auto leaves = own->submit(request(5, 12));
    for (int n = 0; n < 4; ++n) {
      ASSERT_TRUE(leaves->next().value());
    }
  }
  auto comes = own->submit(request(9, 8));  // in the place of the one that left
  EXPECT_EQ(drain(*comes), sampled(request(9, 8)));
  EXPECT_EQ(drain(*stays), golden(12));
}

TEST_P(AheadTest, AnEndOfGenerationIsFoundWhileTheNextStepRuns) {
  // A model whose end is the first of its greedy tokens, from the fourth on, that is new.
  const auto is_new = [this](std::size_t i) {
    const auto end = golden_.greedy.begin() + static_cast<std::ptrdiff_t>(i);
    return std::find(golden_.greedy.begin(), end, golden_.greedy[i]) == end;
  };
  std::size_t n = 3;
  while (n < golden_.greedy.size() && !is_new(n)) {
    ++n;
  }
  if (n + 1 >= golden_.greedy.size()) {
    GTEST_SKIP() << "this model repeats itself";
  }
  model::ModelFile file(GetParam());
  file.metadata.set("tokenizer.ggml.eos_token_id",
                    static_cast<std::uint32_t>(static_cast<std::int32_t>(golden_.greedy[n])));
  const auto path =
      std::filesystem::path(testing::TempDir()) / ("hearth_ahead_" + GetParam() + ".gguf");
  ASSERT_TRUE(formats::write_gguf(path, file.metadata, file.tensors));
  model_ = *model::Model::open(path);
  std::filesystem::remove(path);

  const auto own = engine({.context = 64, .max_sequences = 2, .max_rows = 32});
  auto goes_on = own->submit(request(4, static_cast<std::int64_t>(n) + 6));
  auto ending = request(0, -1);
  ending.ignore_end_of_generation = false;
  auto ends = own->submit(ending);
  EXPECT_EQ(drain(*ends), golden(n));
  EXPECT_EQ(ends->finish_reason(), FinishReason::end_of_generation);
  EXPECT_EQ(drain(*goes_on), sampled(request(4, static_cast<std::int64_t>(n) + 6)));
  // The next turn of a chat, in the caches of the one that ended.
  EXPECT_EQ(answer(*own, request(0, 8)), golden(8));
}

TEST_P(AheadTest, AFailureEndsTheAnswerAndTheNextOneIsRight) {
  for (const bool loses_device : {false, true}) {
    const std::int64_t failing = loses_device ? 3 : 2;
    int n_opened = 0;
    backend_ = *backend::make_gpu_backend([&]() -> Result<std::unique_ptr<backend::gpu::Device>> {
      ++n_opened;
      return open_emulator_device(
          {.failing_submission = n_opened == 1 ? std::optional(failing) : std::nullopt,
           .loses_device = loses_device,
           .is_late = true});
    });
    const auto own = engine();
    auto stream = own->submit(request(0, 8));
    std::size_t n_tokens = 0;
    auto token = stream->next();
    for (; token; token = stream->next()) {
      ASSERT_TRUE(*token);
      EXPECT_EQ(**token, golden_.greedy[n_tokens++]);
    }
    EXPECT_EQ(n_tokens, static_cast<std::size_t>(failing));
    EXPECT_EQ(token.error().message,
              "emulator: submission " + std::to_string(failing) + " fails as asked");
    EXPECT_EQ(answer(*own, request(0, 5)), golden(5));
    EXPECT_EQ(n_opened, loses_device ? 2 : 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AheadTest,
                         testing::Values("llama", "gemma3", "qwen35", "qwen35moe"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace hearth::engine
