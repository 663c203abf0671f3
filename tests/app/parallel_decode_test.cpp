#include "parallel_decode.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "tests/model/golden_model.h"

namespace hearth::app {
namespace {

constexpr std::int64_t n_prompt = 20;
const sampling::SamplingParams greedy{.temperature = 0};
const sampling::SamplingParams sampled{.temperature = 2, .seed = 5};

class ParallelDecodeTest : public testing::Test {
 protected:
  ParallelDecodeTest()
      : golden_(model::load_golden_model("qwen35moe")),
        model_(*model::Model::open(golden_.gguf_path)),
        backend_(*backend::make_cpu_backend({.n_threads = 1})) {}

  std::unique_ptr<engine::Engine> engine(std::int64_t n_sequences, std::int64_t max_rows) const {
    auto created = engine::Engine::create(
        *model_, *backend_, {.context = 60, .max_sequences = n_sequences, .max_rows = max_rows});
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return std::move(*created);
  }

  /// The golden prompt from another token on for each.
  std::vector<std::vector<TokenId>> prompts(std::size_t n_sequences) const {
    std::vector<std::vector<TokenId>> prompts;
    for (std::size_t i = 0; i < n_sequences; ++i) {
      const auto begin = golden_.prompt.begin() + static_cast<std::ptrdiff_t>(i);
      prompts.emplace_back(begin, begin + n_prompt);
    }
    return prompts;
  }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
  std::unique_ptr<backend::Backend> backend_;
};

TEST_F(ParallelDecodeTest, GivesEachSequenceTheTokensThatItHasAlone) {
  for (const auto& sampling : {greedy, sampled}) {
    const auto together = decode_in_parallel(*engine(4, 9), prompts(4), sampling, 8);
    ASSERT_TRUE(together.has_value()) << together.error().message;
    EXPECT_GT(together->speed(), 0);
    ASSERT_EQ(together->tokens.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      const auto alone = decode_in_parallel(*engine(1, 9), {prompts(4)[i]}, sampling, 8);
      ASSERT_TRUE(alone.has_value()) << alone.error().message;
      EXPECT_EQ(alone->tokens.front().size(), 8U);
      EXPECT_EQ(together->tokens[i], alone->tokens.front()) << i;
    }
  }
}

TEST_F(ParallelDecodeTest, ALongerContextThanThatOfTheEngineIsAnError) {
  EXPECT_FALSE(
      decode_in_parallel(*engine(1, 9), {std::vector<TokenId>(60, TokenId{1})}, greedy, 2));
}

TEST_F(ParallelDecodeTest, KnowsHowFarTheFirstGoesWhileOthersRead) {
  for (const std::int64_t n_sequences : {2, 3, 5}) {
    for (const std::int64_t max_rows : {5, 8, 16, 200}) {
      const std::int64_t lead = parallel_lead(n_prompt, n_sequences, max_rows, 1);
      const auto serving = engine(n_sequences, max_rows);
      std::vector<engine::TokenStream> streams;
      for (auto& prompt : prompts(static_cast<std::size_t>(n_sequences))) {
        engine::Request request{.prompt = prompt, .ignore_end_of_generation = true};
        request.sampling.temperature = 0;
        request.max_tokens = streams.empty() ? lead + 2 : 30;
        streams.push_back(*serving->submit(request));
      }
      EXPECT_TRUE(streams.back().next().has_value());
      EXPECT_FALSE(streams.front().finish_reason())
          << n_sequences << " sequences, " << max_rows << " rows: more than 1 + " << lead;
    }
  }
}

TEST(ParallelLead, IsNoneWhereAllReadInOneStep) {
  EXPECT_EQ(parallel_lead(1, 1, 1, 5), 0);
  EXPECT_EQ(parallel_lead(1, 64, 64, 5), 0);
  EXPECT_EQ(parallel_lead(512, 4, 2051, 5), 0);
}

TEST(ParallelLead, GrowsWithThePromptsAndWithGuesses) {
  EXPECT_EQ(parallel_lead(512, 4, 1027, 1), 1);
  EXPECT_EQ(parallel_lead(512, 4, 1027, 5), 5);
  EXPECT_EQ(parallel_lead(512, 4, 4, 1), 511);  // a row each
}

}  // namespace
}  // namespace hearth::app
