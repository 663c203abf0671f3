/// Requests that choose among the largest logits, which is all that a device gives of them then.

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

class TopKTest : public testing::Test {
 protected:
  TopKTest()
      : golden_(model::load_golden_model("qwen35moe")),
        model_(*model::Model::open(golden_.gguf_path)) {}

  Request request(const sampling::SamplingParams& sampling, std::int64_t max_tokens = 8) const {
    return {.prompt = {golden_.prompt.begin(), golden_.prompt.begin() + 12},
            .sampling = sampling,
            .max_tokens = max_tokens,
            .ignore_end_of_generation = true};
  }
  /// The same tokens, for which all logits are needed: one may be raised, if by nothing.
  Request request_of_all(sampling::SamplingParams sampling, std::int64_t max_tokens = 8) const {
    sampling.logit_bias.push_back({TokenId{1}, 1e-30});
    return request(sampling, max_tokens);
  }

  std::unique_ptr<Engine> engine(backend::Backend& backend) const {
    auto created =
        Engine::create(*model_, backend, {.context = 64, .max_sequences = 2, .max_rows = 16});
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return std::move(*created);
  }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
};

TEST_F(TopKTest, GivesTheTokensOfAllLogitsOnEveryBackend) {
  const std::vector<sampling::SamplingParams> wishes{
      {.temperature = 2, .top_k = 40, .top_p = 1, .min_p = 0, .seed = 3},
      {.temperature = 2, .top_k = 20, .min_p = 0, .repeat_penalty = 1.3, .seed = 4},
      {.temperature = 0, .frequency_penalty = 0.5, .presence_penalty = 1},
  };
  std::vector<std::unique_ptr<backend::Backend>> backends;
  backends.push_back(backend::make_reference_backend());
  backends.push_back(engine_backend(1));
  backends.push_back(backend::gpu_backend());
  for (const auto& wish : wishes) {
    const auto expected = answer(*engine(*backends.front()), request_of_all(wish));
    for (const auto& backend : backends) {
      EXPECT_EQ(answer(*engine(*backend), request(wish)), expected);
    }
  }
}

TEST_F(TopKTest, FetchesOnlyThoseFromADevice) {
  auto device = backend::gpu::emulator::open_emulator_device({});
  const auto& observed = *device;
  const auto backend = backend::make_gpu_backend(std::move(device));
  const auto own = engine(*backend);
  const auto n_top = static_cast<std::uint64_t>(own->runner().n_top());
  ASSERT_LT(n_top, static_cast<std::uint64_t>(model_->n_usable_tokens()));
  auto before = observed.counters().downloaded_bytes;
  answer(*own, request({.top_k = 20, .repeat_penalty = 1.1}, 3));
  EXPECT_EQ(observed.counters().downloaded_bytes, before + 3 * n_top * 2 * sizeof(float));
  before = observed.counters().downloaded_bytes;
  const auto row_bytes = static_cast<std::uint64_t>(model_->params().vocab) * sizeof(float);
  // More than there are of the largest, with the penalised ones; any token; a raised one.
  answer(*own, request({.top_k = static_cast<std::int64_t>(n_top) - 5, .repeat_penalty = 1.1}, 1));
  answer(*own, request({.top_k = 0}, 1));
  answer(*own, request_of_all({.top_k = 20}, 1));
  EXPECT_EQ(observed.counters().downloaded_bytes, before + 3 * row_bytes);
}

TEST_F(TopKTest, SharesStepsWithGreedyRequestsAndThoseThatNeedAllLogits) {
  const auto backend = backend::gpu_backend();
  const sampling::SamplingParams wish{.temperature = 2, .top_k = 10, .min_p = 0, .seed = 9};
  for (const auto& other : {request({.temperature = 0}), request_of_all({.seed = 5})}) {
    const auto expected = answer(*engine(*backend), request(wish));
    const auto expected_other = answer(*engine(*backend), other);
    const auto shared = engine(*backend);
    auto first = shared->submit(request(wish));
    auto second = shared->submit(other);
    EXPECT_EQ(drain(*first), expected);
    EXPECT_EQ(drain(*second), expected_other);
  }
}

}  // namespace
}  // namespace hearth::engine
