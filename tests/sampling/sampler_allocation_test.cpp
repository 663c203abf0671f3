#include <vector>

#include <gtest/gtest.h>

#include "sampling/sampler.h"
#include "tests/sampling/allocation_counter.h"

namespace hearth::sampling {
namespace {

TEST(Sampler, AllocatesOnlyWhenItIsMade) {
  constexpr std::size_t n_vocab = 5000;
  std::vector<float> logits(n_vocab);
  std::vector<TokenId> history(300);
  for (std::size_t i = 0; i < n_vocab; ++i) {
    logits[i] = static_cast<float>(i % 101) * 0.1f;
    history[i % history.size()] = TokenId{static_cast<int>(i)};
  }
  const std::vector<SamplingParams> requests{
      {.temperature = 0},
      {.repeat_penalty = 1.1, .presence_penalty = 1},
      {.top_k = 0, .top_p = 0.99, .min_p = 0, .typical_p = 0.99, .repeat_last_n = -1},
      {.top_k = 0, .top_p = 1, .min_p = 0.5},
  };
  std::vector<Candidate> largest;
  for (int i = 0; i < 104; ++i) {
    largest.push_back({TokenId{20 * i}, 9.0f});
  }
  Sampler sampler(n_vocab);
  const int before = allocation_count();
  int n_chosen = 0;
  for (const SamplingParams& params : requests) {
    n_chosen += sampler.sample(params, logits, {.tokens = history}, 5).has_value() ? 1 : 0;
  }
  const auto of_largest =
      sampler.sample_largest({.top_k = 40, .repeat_penalty = 1.1}, largest, {.tokens = history}, 5);
  n_chosen += of_largest.has_value() ? 1 : 0;
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(n_chosen, 5);
}

}  // namespace
}  // namespace hearth::sampling
