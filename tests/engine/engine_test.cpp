#include "engine/engine.h"

#include <memory>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "tests/engine/drain.h"
#include "tests/engine/engine_backend.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

class EngineTest : public testing::Test {
 protected:
  EngineTest() : golden_(model::load_golden_model("gemma3")) {
    model_ = *model::Model::open(golden_.gguf_path);
    backend_ = engine_backend(1);
  }

  std::unique_ptr<Engine> engine(const EngineOptions& options) {
    auto created = Engine::create(*model_, *backend_, options);
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return std::move(*created);
  }

  /// The golden prompt cut to `length` tokens, sampled at a high temperature so that every bit of
  /// the logits matters.
  Request request(std::size_t length, std::uint64_t seed) const {
    return {.prompt = {golden_.prompt.begin(),
                       golden_.prompt.begin() + static_cast<std::ptrdiff_t>(length)},
            .sampling = {.temperature = 1.5, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed},
            .max_tokens = 40,
            .ignore_end_of_generation = true};
  }

  std::vector<TokenId> alone(const Request& request,
                             const EngineOptions& options = {.context = 128}) {
    auto own = engine(options);
    auto stream = own->submit(request);
    EXPECT_TRUE(stream.has_value());
    return drain(*stream);
  }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
  std::unique_ptr<backend::Backend> backend_;
};

TEST_F(EngineTest, TokensDoNotDependOnTheChunksInWhichAPromptIsRead) {
  const auto expected = alone(request(24, 1));
  for (const std::int64_t max_rows : {1, 5, 7, 16}) {
    EXPECT_EQ(alone(request(24, 1), {.context = 128, .max_rows = max_rows}), expected) << max_rows;
  }
}

TEST_F(EngineTest, SaysWhichContextsWouldFit) {
  const auto limited = backend::make_gpu_backend(
      backend::gpu::emulator::open_emulator_device({.memory_bytes = 2'000'000}));
  const auto refused = Engine::create(*model_, *limited, {.context = 1 << 20, .max_sequences = 2});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
  const std::string& message = refused.error().message;
  EXPECT_NE(message.find("'KV cache'"), std::string::npos) << message;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      message, found,
      std::regex("of (\\d+) free bytes, weights, state and workspace take "
                 "(\\d+); .*: (\\d+) as F16, (\\d+) as Q8_0.* for each of 2 sequences")))
      << message;
  EXPECT_LT(std::stoll(found[3]), std::stoll(found[4])) << message;
  const auto fits =
      Engine::create(*model_, *limited, {.context = std::stoll(found[3]), .max_sequences = 2});
  EXPECT_TRUE(fits) << message << "\n" << fits.error().message;
}

TEST_F(EngineTest, TokensDoNotDependOnCompanions) {
  const auto expected = alone(request(24, 1));
  auto shared = engine({.context = 128, .max_sequences = 3, .max_rows = 9});
  auto first = shared->submit(request(9, 2));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(first->next().has_value());  // already decoding when the others arrive
  }
  auto second = shared->submit(request(24, 1));
  auto third = shared->submit(request(3, 3));
  EXPECT_EQ(drain(*second), expected);
  EXPECT_EQ(drain(*third), alone(request(3, 3)));
}

TEST_F(EngineTest, ARequestThatFindsNoRoomWaitsItsTurn) {
  auto single = engine({.context = 128, .max_sequences = 1});
  auto first = single->submit(request(8, 1));
  auto second = single->submit(request(9, 2));
  EXPECT_EQ(drain(*second), alone(request(9, 2)));  // runs the first to its end on the way
  EXPECT_EQ(drain(*first), alone(request(8, 1)));
}

TEST_F(EngineTest, DroppingAStreamFreesItsBlocksAtOnce) {
  auto shared = engine({.context = 128, .max_sequences = 2});
  const auto free_before = shared->n_free_blocks();
  {
    auto stream = shared->submit(request(24, 1));
    ASSERT_TRUE(stream->next().has_value());
    EXPECT_LT(shared->n_free_blocks(), free_before);
  }
  EXPECT_EQ(shared->n_free_blocks(), free_before);
  EXPECT_EQ(*shared->step(), false);
}

TEST_F(EngineTest, AFullContextIsReportedNotHidden) {
  auto small = engine({.context = 20});
  auto wanted = request(16, 1);
  wanted.max_tokens = -1;
  auto stream = small->submit(wanted);
  EXPECT_EQ(drain(*stream).size(), 4u);
  EXPECT_EQ(stream->finish_reason(), FinishReason::context_full);
}

TEST_F(EngineTest, EndOfGenerationEndsTheStreamAndIsNotDelivered) {
  auto wanted = request(24, 1);
  wanted.ignore_end_of_generation = false;
  const auto end = model_->tokenizer().end_of_generation().front();
  wanted.sampling.logit_bias = {{end, 1000.0}};
  auto own = engine({.context = 128});
  auto stream = own->submit(wanted);
  EXPECT_TRUE(drain(*stream).empty());
  EXPECT_EQ(stream->finish_reason(), FinishReason::end_of_generation);
}

TEST_F(EngineTest, APromptLongerThanTheContextIsRefusedWithBothLengths) {
  auto small = engine({.context = 16});
  const auto refused = small->submit(request(24, 1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("24 tokens"), std::string::npos);
  EXPECT_NE(refused.error().message.find("holds 16"), std::string::npos);
}

TEST_F(EngineTest, BadRequestsAreRefused) {
  auto own = engine({.context = 128});
  EXPECT_FALSE(own->submit({}).has_value());
  auto outside = request(4, 1);
  outside.prompt[2] = static_cast<TokenId>(model_->params().vocab);
  EXPECT_FALSE(own->submit(outside).has_value());
  auto negative = request(4, 1);
  negative.prompt[0] = TokenId{-1};
  EXPECT_FALSE(own->submit(negative).has_value());
  auto bad_sampling = request(4, 1);
  bad_sampling.sampling.top_p = 7;
  EXPECT_FALSE(own->submit(bad_sampling).has_value());
}

TEST_F(EngineTest, OptionsOutOfRangeAreRefused) {
  EXPECT_FALSE(Engine::create(*model_, *backend_, {.context = -5}).has_value());
  EXPECT_FALSE(
      Engine::create(*model_, *backend_, {.context = 64, .max_sequences = 8, .max_rows = 4})
          .has_value());
}

TEST_F(EngineTest, AThreadCountNeverChangesATokenWithAnyCacheType) {
  for (const auto dtype : {DType::f32, DType::f16, DType::bf16}) {
    backend_ = engine_backend(1);
    const auto expected = alone(request(24, 5), {.context = 128, .kv_dtype = dtype});
    for (const int n_threads : {2, 3}) {
      backend_ = engine_backend(n_threads);
      EXPECT_EQ(alone(request(24, 5), {.context = 128, .kv_dtype = dtype}), expected) << n_threads;
    }
  }
}

}  // namespace
}  // namespace hearth::engine
