/// Guesses change how long an answer takes, and nothing else.

#include "engine/speculate/speculation.h"

#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/speculate/model_drafter.h"
#include "tests/engine/drain.h"
#include "tests/engine/engine_backend.h"
#include "tests/engine/speculate/scripted_drafter.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

class SpeculationTest : public testing::TestWithParam<const char*> {
 protected:
  SpeculationTest() : golden_(model::load_golden_model(GetParam())) {
    model_ = *model::Model::open(golden_.gguf_path);
    backend_ = engine_backend(1);
  }

  std::unique_ptr<Engine> engine(const EngineOptions& options,
                                 std::unique_ptr<Drafter> drafter = nullptr) {
    auto created = Engine::create(*model_, *backend_, options, std::move(drafter));
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return std::move(*created);
  }

  /// Sampled at a high temperature, where every bit of the logits matters, or greedy.
  Request request(std::size_t length, std::uint64_t seed) const {
    return {.prompt = {golden_.prompt.begin(),
                       golden_.prompt.begin() + static_cast<std::ptrdiff_t>(length)},
            .sampling = {.temperature = seed % 3 == 0 ? 0 : 1.5,
                         .top_k = 0,
                         .top_p = 1,
                         .min_p = 0,
                         .repeat_penalty = seed % 2 == 0 ? 1.1 : 1.0,
                         .seed = seed},
            .max_tokens = 16 + static_cast<std::int64_t>(seed % 9),
            .ignore_end_of_generation = true};
  }

  std::vector<TokenId> plain(const Request& request) {
    auto stream = plain_->submit(request);
    return drain(*stream);
  }

  std::vector<TokenId> with_answer(const Request& request) {
    auto tokens = request.prompt;
    const auto answer = plain(request);
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    return tokens;
  }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
  std::unique_ptr<backend::Backend> backend_;
  std::unique_ptr<Engine> plain_;
};

TEST_P(SpeculationTest, AnswersAreThoseOfPlainDecodingWhateverIsGuessed) {
  plain_ = engine({.context = 64});
  std::mt19937 random(1);
  for (std::int64_t depth = 0; depth <= 7; ++depth) {
    for (const double wrong : {0.0, 0.2, 0.5, 1.0}) {
      std::vector<Request> requests;
      std::vector<std::vector<TokenId>> answers;
      for (std::uint64_t i = 0; i < 3; ++i) {
        requests.push_back(request(1 + random() % 24, random()));
        answers.push_back(with_answer(requests.back()));
      }
      auto guessing = engine({.context = 64,
                              .max_sequences = 2,
                              .max_rows = 2 + static_cast<std::int64_t>(random() % 20),
                              .speculation = {.max_depth = depth, .is_adaptive = false}},
                             std::make_unique<ScriptedDrafter>(answers, wrong, random()));
      std::vector<TokenStream> streams;
      for (const auto& each : requests) {
        streams.push_back(*guessing->submit(each));
      }
      for (std::size_t i = 0; i < streams.size(); ++i) {
        auto tokens = requests[i].prompt;
        const auto answer = drain(streams[i]);
        tokens.insert(tokens.end(), answer.begin(), answer.end());
        EXPECT_EQ(tokens, answers[i]) << "depth " << depth << ", wrong " << wrong;
      }
    }
  }
}

TEST_P(SpeculationTest, RightGuessesTakeFewerSteps) {
  plain_ = engine({.context = 64});
  auto wanted = request(8, 5);
  wanted.max_tokens = 21;  // one after the prompt, then four steps of five
  auto guessing = engine({.context = 64, .speculation = {.max_depth = 4, .is_adaptive = false}},
                         std::make_unique<ScriptedDrafter>(
                             std::vector<std::vector<TokenId>>{with_answer(wanted)}, 0.0, 1u));
  auto stream = guessing->submit(wanted);
  drain(*stream);
  const auto report = guessing->speculation().report();
  EXPECT_EQ(report.n_steps, 4);
  EXPECT_EQ(report.n_drafted, 16);
  EXPECT_EQ(report.n_accepted, 16);
}

TEST_P(SpeculationTest, AnAnswerThatIsLeftFreesItsStateSlots) {
  auto guessing =
      engine({.context = 64, .speculation = {.max_depth = 3, .is_adaptive = false}},
             std::make_unique<ScriptedDrafter>(std::vector<std::vector<TokenId>>(1), 0.5, 1));
  const auto before = guessing->n_free_state_slots();
  {
    auto stream = guessing->submit(request(8, 1));
    ASSERT_TRUE(stream->next().has_value());
    ASSERT_TRUE(stream->next().has_value());
    EXPECT_EQ(guessing->n_free_state_slots(), before - 4);
  }
  EXPECT_EQ(guessing->n_free_state_slots(), before);
}

/// The same model as its own drafter: every greedy guess is right.
TEST_P(SpeculationTest, AModelGuessesItsOwnGreedyAnswer) {
  plain_ = engine({.context = 64});
  for (const std::int64_t depth : {1, 2, 5}) {
    auto drafter = ModelDrafter::create(
        *model_, *model_, *backend_,
        {.context = 64, .max_sequences = 2, .max_depth = depth, .max_rows = 7});
    ASSERT_TRUE(drafter.has_value()) << drafter.error().message;
    auto guessing = engine({.context = 64,
                            .max_sequences = 2,
                            .speculation = {.max_depth = depth, .is_adaptive = false}},
                           std::move(*drafter));
    std::vector<Request> requests{request(24, 3), request(5, 6), request(11, 9)};
    std::vector<TokenStream> streams;
    for (auto& each : requests) {
      each.sampling.temperature = 0;
      each.sampling.repeat_penalty = 1;
      streams.push_back(*guessing->submit(each));
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      EXPECT_EQ(drain(streams[i]), plain(requests[i])) << depth;
    }
    const auto report = guessing->speculation().report();
    EXPECT_GT(report.n_drafted, 0);
    EXPECT_EQ(report.n_accepted, report.n_drafted) << depth;
  }
}

/// Sampled answers leave the greedy path, so guesses are taken back all the time.
TEST_P(SpeculationTest, AModelThatGuessesWrongChangesNothing) {
  plain_ = engine({.context = 64});
  auto drafter = ModelDrafter::create(*model_, *model_, *backend_,
                                      {.context = 64, .max_depth = 4, .max_rows = 5});
  ASSERT_TRUE(drafter.has_value());
  auto guessing = engine({.context = 64, .speculation = {.max_depth = 4, .is_adaptive = false}},
                         std::move(*drafter));
  for (const std::uint64_t seed : {1u, 2u, 4u, 5u, 7u}) {
    auto stream = guessing->submit(request(4 + seed, seed));
    EXPECT_EQ(drain(*stream), plain(request(4 + seed, seed))) << seed;
  }
  const auto report = guessing->speculation().report();
  EXPECT_LT(report.n_accepted, report.n_drafted);
}

/// The engine takes the model's own head where there is one.
TEST_P(SpeculationTest, TheMtpHeadChangesNothing) {
  if (model_->mtp() == nullptr) {
    EXPECT_EQ(engine({.context = 64, .speculation = {.max_depth = 3}})->speculation().drafter(),
              nullptr);
    return;
  }
  plain_ = engine({.context = 64});
  for (const std::int64_t depth : {1, 2, 7}) {
    auto guessing = engine({.context = 64,
                            .max_sequences = 2,
                            .max_rows = 9,
                            .speculation = {.max_depth = depth, .is_adaptive = false}});
    std::vector<Request> requests{request(24, 3), request(1, 4), request(11, 5)};
    std::vector<TokenStream> streams;
    for (const auto& each : requests) {
      streams.push_back(*guessing->submit(each));
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      EXPECT_EQ(drain(streams[i]), plain(requests[i])) << depth;
    }
    EXPECT_GT(guessing->speculation().report().n_drafted, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SpeculationTest,
                         testing::Values("llama", "gemma3", "qwen35-heads", "qwen35moe",
                                         "qwen3next"));

}  // namespace
}  // namespace hearth::engine
