/// Models with recurrent state: what a sequence keeps is its own, and nothing of it stays behind.

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/engine/drain.h"
#include "tests/engine/engine_backend.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

class Hybrid : public testing::Test {
 protected:
  explicit Hybrid(const std::string& name = "qwen35moe")
      : golden_(model::load_golden_model(name)), model_(*model::Model::open(golden_.gguf_path)) {}

  std::unique_ptr<Engine> engine(const EngineOptions& options) {
    auto created = Engine::create(*model_, *backend_, options);
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return std::move(*created);
  }

  /// A prompt of its own for each number, sampled at a high temperature so that every bit of the
  /// logits matters.
  [[nodiscard]] Request request(std::size_t i) const {
    std::vector<TokenId> prompt(golden_.prompt.begin(), golden_.prompt.end());
    std::rotate(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(i), prompt.end());
    return {.prompt = std::move(prompt),
            .sampling = {.temperature = 1.5, .top_k = 0, .top_p = 1, .min_p = 0, .seed = i},
            .max_tokens = 40,
            .ignore_end_of_generation = true};
  }

  std::vector<TokenId> answer(Engine& engine, std::size_t i) const {
    return engine::answer(engine, request(i));
  }

  /// Logits of the golden prompt's tokens [first, end) in slot `slot`, run as one chunk.
  std::vector<float> logits(Runner& runner, std::size_t first, std::size_t end,
                            std::int32_t slot) const {
    const std::vector<std::int32_t> blocks{0, 1};
    StepBlock step;
    const auto sequence = step.add_sequence(blocks, slot);
    for (std::size_t position = first; position < end; ++position) {
      step.add_row(sequence, {.token = golden_.prompt[position],
                              .position = static_cast<std::int64_t>(position),
                              .wants_logits = true,
                              .state_target = slot});
    }
    const auto result = runner.run(step.view());
    EXPECT_TRUE(result.has_value());
    return {result->begin(), result->end()};
  }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
  std::unique_ptr<backend::Backend> backend_ = engine_backend(1);
};

TEST_F(Hybrid, ASequenceInAUsedSlotIsAsIfTheSlotWereNew) {
  const auto fresh = answer(*engine({.context = 128}), 2);
  const auto used = engine({.context = 128});
  answer(*used, 1);
  EXPECT_EQ(answer(*used, 2), fresh);
}

TEST_F(Hybrid, SixSequencesAtOnceAnswerAsEachWouldAlone) {
  const auto together =
      engine({.context = 128, .max_sequences = 6, .max_rows = 11, .kv_dtype = DType::f16});
  std::vector<TokenStream> streams;
  for (std::size_t i = 0; i < 6; ++i) {
    streams.push_back(*together->submit(request(i)));
  }
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(drain(streams[i]), answer(*engine({.context = 128}), i)) << "sequence " << i;
  }
}

TEST_F(Hybrid, GivesEverySlotBack) {
  const auto own = engine({.context = 128, .max_sequences = 3, .max_rows = 8});
  {
    auto cancelled = *own->submit(request(1));
    ASSERT_TRUE(own->step().has_value());
    EXPECT_EQ(own->n_free_state_slots(), 2);
  }
  EXPECT_EQ(own->n_free_state_slots(), 3);
  answer(*own, 2);
  EXPECT_EQ(own->n_free_state_slots(), 3);
}

TEST_F(Hybrid, ASnapshotGoesOnWithTheSameBits) {
  auto runner = *Runner::create(*model_, *backend_,
                                {.kv_dtype = DType::f32,
                                 .n_kv_blocks = 2,
                                 .n_state_slots = 3,
                                 .max_rows = 24,
                                 .max_logit_rows = 24});
  logits(*runner, 0, 10, 0);
  runner->copy_state(0, 2);
  const auto expected = logits(*runner, 10, 20, 0);
  logits(*runner, 10, 13, 1);  // somebody else's steps
  EXPECT_EQ(logits(*runner, 10, 20, 2), expected);
}

TEST_F(Hybrid, CountsItsStateInTheMemoryOfTheSession) {
  const auto own = engine({.context = 64, .max_sequences = 2});
  const graph::StateCacheDesc states{2, model_->state_layers()};
  EXPECT_GT(states.bytes(), 0);
  EXPECT_EQ(own->runner().memory().state_bytes, states.bytes());
  EXPECT_NE(own->runner().layout().find("2 slots"), std::string::npos);
}

class PaddedVocabulary : public Hybrid {
 protected:
  PaddedVocabulary() : Hybrid("qwen35") {}
};

TEST_F(PaddedVocabulary, NeverSamplesARowThatBelongsToNoToken) {
  ASSERT_LT(model_->n_usable_tokens(), model_->params().vocab);
  const auto own = engine({.context = 512});
  auto flat = request(0);
  flat.sampling.temperature = 100;  // every row is as likely as any other
  flat.max_tokens = 400;
  auto stream = *own->submit(flat);
  for (const auto token : drain(stream)) {
    EXPECT_LT(static_cast<std::int64_t>(token), model_->n_usable_tokens());
  }
}

TEST_F(PaddedVocabulary, RefusesAPromptWithSuchARow) {
  auto padded = request(0);
  padded.prompt[3] = static_cast<TokenId>(model_->n_usable_tokens());
  const auto own = engine({.context = 64});
  const auto stream = own->submit(padded);
  ASSERT_FALSE(stream.has_value());
  EXPECT_NE(stream.error().message.find("outside the vocabulary of 267"), std::string::npos);
}

}  // namespace
}  // namespace hearth::engine
