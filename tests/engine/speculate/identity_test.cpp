/// Ten thousand answers with guesses, each equal to that of plain decoding.

#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/engine/drain.h"
#include "tests/engine/engine_backend.h"
#include "tests/engine/speculate/scripted_drafter.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

constexpr int n_answers = 2000;  // of each of the five models
constexpr std::int64_t context = 48;
constexpr std::int64_t max_sequences = 3;
constexpr std::int64_t max_depth = 7;

/// An engine whose guesses can be told for every case anew.
struct Guessing {
  ScriptedDrafter* drafter = nullptr;  // the engine's
  std::unique_ptr<Engine> engine;
};

class Identity : public testing::TestWithParam<const char*> {
 protected:
  Identity() : model_(*model::Model::open(model::load_golden_model(GetParam()).gguf_path)) {
    backend_ = engine_backend(1);
    plain_ = *Engine::create(*model_, *backend_, {.context = context});
    for (std::int64_t depth = 1; depth <= max_depth; ++depth) {
      auto drafter =
          std::make_unique<ScriptedDrafter>(std::vector<std::vector<TokenId>>{}, 0.0, 1u);
      auto* script = drafter.get();
      guessing_.push_back(
          {script, *Engine::create(*model_, *backend_,
                                   {.context = context,
                                    .max_sequences = max_sequences,
                                    .max_rows = 3 * depth,
                                    .speculation = {.max_depth = depth, .is_adaptive = false}},
                                   std::move(drafter))});
    }
  }

  Request random_request() {
    std::uniform_int_distribution<std::int32_t> token(
        0, static_cast<std::int32_t>(model_->n_usable_tokens()) - 1);
    Request request{.max_tokens = 1 + static_cast<std::int64_t>(random_() % 20),
                    .ignore_end_of_generation = random_() % 2 == 0};
    for (std::size_t i = 0; i < 1 + random_() % 20; ++i) {
      request.prompt.push_back(TokenId{token(random_)});
    }
    constexpr std::array temperatures{0.0, 0.7, 1.5};
    request.sampling = {.temperature = temperatures[random_() % 3],
                        .top_k = random_() % 2 == 0 ? 0 : 40,
                        .top_p = random_() % 2 == 0 ? 1.0 : 0.9,
                        .repeat_penalty = random_() % 2 == 0 ? 1.0 : 1.2,
                        .seed = random_()};
    return request;
  }

  std::unique_ptr<const model::Model> model_;
  std::unique_ptr<backend::Backend> backend_;
  std::unique_ptr<Engine> plain_;
  std::vector<Guessing> guessing_;  // by depth, from 1 on
  std::mt19937 random_{1};
};

TEST_P(Identity, OfTwoThousandAnswersWithGuesses) {
  constexpr std::array wrong{0.0, 0.1, 0.3, 0.6, 1.0};
  for (int n = 0; n < n_answers && !HasFailure();) {
    std::vector<Request> requests(1 + random_() % max_sequences);
    std::vector<std::vector<TokenId>> answers;
    for (auto& request : requests) {
      request = random_request();
      auto stream = plain_->submit(request);
      answers.push_back(request.prompt);
      const auto answer = drain(*stream);
      answers.back().insert(answers.back().end(), answer.begin(), answer.end());
    }
    auto& [drafter, engine] = guessing_[random_() % guessing_.size()];
    drafter->learn(answers, wrong[random_() % wrong.size()]);
    std::vector<TokenStream> streams;
    for (const auto& request : requests) {
      streams.push_back(*engine->submit(request));
    }
    for (std::size_t i = 0; i < streams.size(); ++i, ++n) {
      auto tokens = requests[i].prompt;
      const auto answer = drain(streams[i]);
      tokens.insert(tokens.end(), answer.begin(), answer.end());
      EXPECT_EQ(tokens, answers[i]) << "answer " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Identity,
                         testing::Values("llama", "gemma3", "qwen35-heads", "qwen35moe",
                                         "qwen3next"));

}  // namespace
}  // namespace hearth::engine
