#include "engine/perplexity.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/engine_backend.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

class PerplexityTest : public testing::Test {
 protected:
  PerplexityTest() : golden_(model::load_golden_model("llama")) {
    model_ = *model::Model::open(golden_.gguf_path);
    backend_ = engine_backend(1);
  }

  std::unique_ptr<Runner> runner(std::int64_t max_rows) {
    return std::move(*Runner::create(*model_, *backend_,
                                     {.kv_dtype = DType::f32,
                                      .n_kv_blocks = 4,
                                      .max_rows = max_rows,
                                      .max_logit_rows = max_rows}));
  }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
  std::unique_ptr<backend::Backend> backend_;
};

TEST_F(PerplexityTest, ScoresTheSecondHalfOfEachPieceLikeTheGoldenLogits) {
  // The golden prompt starts with the begin token, so a piece that is the prompt is computed as it
  // was.
  std::vector<TokenId> text = golden_.prompt;
  text.insert(text.end(), golden_.prompt.begin(), golden_.prompt.end());
  const auto context = static_cast<std::int64_t>(golden_.prompt.size());
  double sum = 0;
  for (std::int64_t position = context / 2; position + 1 < context; ++position) {
    const float* logits = golden_.logits.data() + position * golden_.n_vocab;
    double total = 0;
    for (std::int64_t i = 0; i < golden_.n_vocab; ++i) {
      total += std::exp(static_cast<double>(logits[i]));
    }
    const auto next =
        static_cast<std::size_t>(golden_.prompt[static_cast<std::size_t>(position + 1)]);
    sum += std::log(total) - static_cast<double>(logits[next]);
  }
  const auto n_scored = context - 1 - context / 2;
  const double expected = std::exp(sum / static_cast<double>(n_scored));

  auto own = runner(context);
  int n_pieces = 0;
  const auto measured = measure_perplexity(
      *own, text, context, [&](std::int64_t, std::int64_t, const Perplexity&) { ++n_pieces; });
  ASSERT_TRUE(measured.has_value()) << measured.error().message;
  EXPECT_EQ(n_pieces, 2);
  EXPECT_EQ(measured->n_scored, 2 * (context - 1 - context / 2));
  EXPECT_NEAR(measured->value() / expected, 1.0, 1e-4);
}

TEST_F(PerplexityTest, DoesNotDependOnTheChunkSize) {
  std::vector<TokenId> text = golden_.prompt;
  text.insert(text.end(), golden_.greedy.begin(), golden_.greedy.end());
  const auto ignore = [](std::int64_t, std::int64_t, const Perplexity&) {};
  const auto whole = measure_perplexity(*runner(32), text, 32, ignore);
  const auto chunked = measure_perplexity(*runner(5), text, 32, ignore);
  EXPECT_EQ(whole->sum, chunked->sum);
}

TEST_F(PerplexityTest, ATextShorterThanTwoContextsIsRefused) {
  const auto ignore = [](std::int64_t, std::int64_t, const Perplexity&) {};
  const auto refused = measure_perplexity(*runner(16), golden_.prompt, 16, ignore);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace hearth::engine
