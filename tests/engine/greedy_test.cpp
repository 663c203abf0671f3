/// Greedy requests, for which the device finds the largest logit itself.

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/reference/reference_backend.h"
#include "engine/engine.h"
#include "tests/backend/gpu/backend_under_test.h"
#include "tests/engine/drain.h"
#include "tests/engine/engine_backend.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

class GreedyTest : public testing::TestWithParam<std::string> {
 protected:
  GreedyTest()
      : golden_(model::load_golden_model(GetParam())),
        model_(*model::Model::open(golden_.gguf_path)) {}

  /// The first tokens of the golden prompt.
  Request request(std::size_t length, std::int64_t max_tokens) const {
    return {.prompt = {golden_.prompt.begin(),
                       golden_.prompt.begin() + static_cast<std::ptrdiff_t>(length)},
            .sampling = {.temperature = 0},
            .max_tokens = max_tokens,
            .ignore_end_of_generation = true};
  }
  /// The same tokens, chosen by the sampler: an edit that may raise any logit needs them all.
  Request sampled_request(std::size_t length, std::int64_t max_tokens) const {
    auto wanted = request(length, max_tokens);
    wanted.sampling.logit_bias = {{TokenId{1}, 1e-30}};
    EXPECT_FALSE(sampling::takes_largest(wanted.sampling));
    return wanted;
  }

  std::unique_ptr<Engine> engine(backend::Backend& backend, std::int64_t n_sequences = 1,
                                 std::int64_t max_rows = 16) const {
    auto created = Engine::create(
        *model_, backend, {.context = 64, .max_sequences = n_sequences, .max_rows = max_rows});
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return std::move(*created);
  }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
};

TEST_P(GreedyTest, GivesTheTokensOfTheSamplerOnEveryBackend) {
  std::vector<std::unique_ptr<backend::Backend>> backends;
  backends.push_back(backend::make_reference_backend());
  backends.push_back(engine_backend(1));
  backends.push_back(backend::gpu_backend());
  for (const auto& backend : backends) {
    const auto own = engine(*backend);
    const auto tokens = answer(*own, request(24, 12));
    EXPECT_EQ(tokens, std::vector(golden_.greedy.begin(), golden_.greedy.begin() + 12));
    EXPECT_EQ(answer(*own, sampled_request(24, 12)), tokens);
  }
}

TEST_P(GreedyTest, FetchesNoLogitsFromADevice) {
  auto device = backend::gpu::emulator::open_emulator_device({});
  const auto& observed = *device;
  const auto backend = backend::make_gpu_backend(std::move(device));
  const auto own = engine(*backend);
  const auto before = observed.counters().downloaded_bytes;
  answer(*own, request(4, 3));
  EXPECT_EQ(observed.counters().downloaded_bytes, before);
  answer(*own, sampled_request(4, 3));
  const auto row_bytes = static_cast<std::uint64_t>(model_->params().vocab) * sizeof(float);
  EXPECT_EQ(observed.counters().downloaded_bytes, before + 3 * row_bytes);
}

TEST_P(GreedyTest, SharesStepsWithSampledRequests) {
  const auto backend = backend::gpu_backend();
  const auto shared = engine(*backend, 3, 7);
  auto sampled = sampled_request(9, 7);
  sampled.sampling.temperature = 1.5;
  auto first = shared->submit(request(5, 9));
  ASSERT_TRUE(first->next().has_value());  // alone; then with another greedy one
  auto second = shared->submit(request(11, 9));
  ASSERT_TRUE(first->next().has_value());
  auto third = shared->submit(sampled);
  const auto processor = engine_backend(1);
  const auto alone = engine(*processor);
  EXPECT_EQ(drain(*second), answer(*alone, request(11, 9)));
  EXPECT_EQ(drain(*third), answer(*alone, sampled));
  const auto expected = answer(*alone, request(5, 9));
  EXPECT_EQ(drain(*first), std::vector(expected.begin() + 2, expected.end()));
}

INSTANTIATE_TEST_SUITE_P(Models, GreedyTest,
                         testing::Values("llama", "gemma3", "qwen35", "qwen35moe"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace hearth::engine
