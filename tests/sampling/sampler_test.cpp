#include "sampling/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/random.h"

namespace hearth::sampling {
namespace {

using testing::HasSubstr;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Every stage off: a draw from the plain softmax.
SamplingParams plain() {
  return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};
}

Result<Choice> sample(const SamplingParams& params, const std::vector<float>& logits,
                      const History& history = {}, std::int64_t position = 0) {
  Sampler sampler(logits.size());
  return sampler.sample(params, logits, history, position);
}

std::size_t token_of(const Result<Choice>& choice) {
  return static_cast<std::size_t>(choice->token);
}

// --- greedy

TEST(Greedy, TakesTheLargestLogit) {
  EXPECT_EQ(sample({.temperature = 0}, {1, 3, 2}), (Choice{.token = TokenId{1}}));
  EXPECT_EQ(sample({.temperature = -1}, {1, 3, 2}), (Choice{.token = TokenId{1}}));
}

TEST(Greedy, BreaksTiesByLowestId) {
  EXPECT_EQ(sample({.temperature = 0}, {1, 3, 3, 3})->token, TokenId{1});
}

TEST(Greedy, IgnoresTheTruncatingStages) {
  // Typical sampling would remove the likeliest token.
  std::vector<float> logits(11, 0.0f);
  logits[4] = 1.9f;
  EXPECT_NE(sample({.temperature = 1e-6, .top_p = 1, .min_p = 0, .typical_p = 0.1}, logits)->token,
            TokenId{4});
  EXPECT_EQ(sample({.temperature = 0, .top_p = 1, .min_p = 0, .typical_p = 0.1}, logits)->token,
            TokenId{4});
}

TEST(Greedy, NeedsNothingButTheLargestUnlessLogitsAreEdited) {
  EXPECT_TRUE(takes_largest({.temperature = 0}));
  EXPECT_TRUE(takes_largest({.temperature = -1, .top_k = 3, .top_p = 0.1, .typical_p = 0.5}));
  EXPECT_FALSE(takes_largest({.temperature = 0.1}));
  EXPECT_FALSE(takes_largest({.temperature = 0, .repeat_penalty = 1.1}));
  EXPECT_FALSE(takes_largest({.temperature = 0, .frequency_penalty = 0.5}));
  EXPECT_FALSE(takes_largest({.temperature = 0, .presence_penalty = 0.5}));
  EXPECT_FALSE(takes_largest({.temperature = 0, .logit_bias = {{TokenId{1}, 1.0}}}));
}

TEST(LargestNeeded, IsTopKAndWhatEditsMayPutBehindOthers) {
  EXPECT_EQ(largest_needed({.temperature = 0}, 1000), 1);
  EXPECT_EQ(largest_needed({.top_k = 20}, 1000), 20);
  EXPECT_EQ(largest_needed({.top_k = 20, .repeat_penalty = 1.1}, 1000), 84);
  EXPECT_EQ(largest_needed({.top_k = 20, .repeat_penalty = 1.1}, 7), 27);
  EXPECT_EQ(largest_needed({.top_k = 20, .frequency_penalty = 1, .repeat_last_n = 5}, 1000), 25);
  EXPECT_EQ(largest_needed({.top_k = 20, .presence_penalty = 1, .repeat_last_n = -1}, 1000), 1020);
  EXPECT_EQ(
      largest_needed({.top_k = 20, .presence_penalty = 1, .count_scope = CountScope::output}, 1000),
      1020);
  EXPECT_EQ(
      largest_needed({.temperature = 0, .logit_bias = {{TokenId{1}, -1}, {TokenId{2}, 0}}}, 1000),
      3);
}

TEST(LargestNeeded, IsNothingWhereAnyTokenMayBeChosen) {
  EXPECT_EQ(largest_needed({.top_k = 0}, 10), std::nullopt);
  EXPECT_EQ(largest_needed({.top_k = std::numeric_limits<std::int64_t>::max()}, 10), std::nullopt);
  EXPECT_EQ(largest_needed({.repeat_penalty = 0.9}, 10), std::nullopt);
  EXPECT_EQ(largest_needed({.frequency_penalty = -0.1}, 10), std::nullopt);
  EXPECT_EQ(largest_needed({.temperature = 0, .presence_penalty = -0.1}, 10), std::nullopt);
  EXPECT_EQ(largest_needed({.logit_bias = {{TokenId{1}, 0.5}}}, 10), std::nullopt);
}

/// The `count` largest, in order of ids.
std::vector<Candidate> largest_of(const std::vector<float>& logits, std::size_t count) {
  std::vector<Candidate> ranking;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    ranking.push_back({TokenId{static_cast<std::int32_t>(i)}, logits[i]});
  }
  std::ranges::sort(ranking, [](const Candidate& a, const Candidate& b) {
    const bool is_a = a.logit < infinity;
    const bool is_b = b.logit < infinity;
    if (is_a != is_b) {
      return is_b;
    }
    return is_a && a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  ranking.resize(std::min(count, ranking.size()));
  std::ranges::sort(ranking, {}, &Candidate::token);
  return ranking;
}

TEST(SampleLargest, IsTheChoiceFromAllLogits) {
  constexpr std::size_t n_vocab = 400;
  std::vector<SamplingParams> requests{
      {.temperature = 0, .repeat_penalty = 2},
      {.top_k = 1},
      {.temperature = 2, .top_k = 20, .top_p = 1, .min_p = 0},
      {.temperature = 2, .top_k = 30, .repeat_penalty = 1.5},
      {.temperature = 3, .top_k = 30, .min_p = 0, .repeat_penalty = 3, .repeat_last_n = 20},
      {.temperature = 3, .top_k = 5, .frequency_penalty = 2, .presence_penalty = 1},
      {.temperature = 3, .top_k = 5, .presence_penalty = 9, .count_scope = CountScope::output},
      {.temperature = 2, .top_k = 9, .typical_p = 0.8, .logit_bias = {{TokenId{3}, -200}}},
  };
  Sampler sampler(n_vocab);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(n_vocab);
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < n_vocab; ++i) {
      const double noise = uniform(7, static_cast<std::int64_t>(i) + round * 1000, Purpose::token);
      logits[i] = static_cast<float>(std::round(noise * 40) / 8 - 2);  // many are equal
    }
    for (std::size_t i = 0; i < 40; ++i) {  // what is likely has been said before
      tokens.push_back(largest_of(logits, 60)[i].token);
    }
    for (SamplingParams& params : requests) {
      params.seed = static_cast<std::uint64_t>(round);
      const History history{tokens, 25};
      const auto needed = largest_needed(params, std::ssize(tokens));
      ASSERT_TRUE(needed.has_value());
      const auto largest = largest_of(logits, static_cast<std::size_t>(*needed));
      const auto chosen = sampler.sample_largest(params, largest, history, round);
      ASSERT_TRUE(chosen.has_value());
      EXPECT_EQ(*chosen, *sampler.sample(params, logits, history, round));
    }
  }
}

TEST(SampleLargest, HasTheErrorsOfAllLogits) {
  const std::vector<std::vector<float>> cases{
      {1, nan, infinity}, {infinity, 3, nan}, {1, -nan, 2}, {-infinity, -infinity, -infinity}};
  for (const auto& logits : cases) {
    const SamplingParams params{.top_k = 1};
    Sampler sampler(logits.size());
    const auto chosen = sampler.sample_largest(params, largest_of(logits, 1), {}, 6);
    ASSERT_FALSE(chosen.has_value());
    EXPECT_EQ(chosen.error().message, sampler.sample(params, logits, {}, 6).error().message);
  }
}

TEST(Greedy, IsTheChoiceFromTheLargestAloneWithTheSameErrors) {
  const std::vector<std::vector<float>> cases{{1, 3, 2, 3},          {-infinity, -5}, {-0.0f, 0.0f},
                                              {1, nan, infinity},    {infinity, nan}, {1, -nan, 2},
                                              {-infinity, -infinity}};
  for (const auto& logits : cases) {
    const auto expected = sample({.temperature = 0}, logits, {}, 6);
    const auto chosen = choose_largest(largest_value(logits), 6);
    ASSERT_EQ(chosen.has_value(), expected.has_value());
    if (expected) {
      EXPECT_EQ(*chosen, *expected);
    } else {
      EXPECT_EQ(chosen.error().message, expected.error().message);
    }
  }
}

TEST(Greedy, ObeysBiasAndPenalties) {
  const std::vector<TokenId> history{TokenId{1}};
  EXPECT_EQ(sample({.temperature = 0, .logit_bias = {{TokenId{1}, -100}}}, {1, 3, 2})->token,
            TokenId{2});
  EXPECT_EQ(sample({.temperature = 0, .repeat_penalty = 2}, {1, 3, 2}, {.tokens = history})->token,
            TokenId{2});
}

TEST(Greedy, IsWhatATinyTemperatureTendsTo) {
  auto params = plain();
  params.temperature = 1e-300;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    params.seed = seed;
    EXPECT_EQ(sample(params, {1, 3, 2.99f})->token, TokenId{1});
  }
}

// --- order

TEST(Sampler, AppliesBiasBeforePenalties) {
  // 1 + 3 = 4, halved 2: below 2.5. The other way round, 0.5 + 3 = 3.5 would win.
  const std::vector<TokenId> history{TokenId{0}};
  const SamplingParams params{
      .temperature = 0, .repeat_penalty = 2, .logit_bias = {{TokenId{0}, 3}}};
  EXPECT_EQ(sample(params, {1, 2.5f}, {.tokens = history})->token, TokenId{1});
}

TEST(Sampler, AppliesTopKBeforeTopP) {
  // Of {0.4, 0.3, 0.3} top-k 2 leaves {0.57, 0.43}, where top-p 0.5 keeps one token; top-p 0.5 of
  // all three would keep two.
  auto params = plain();
  params.top_k = 2;
  params.top_p = 0.5;
  const std::vector<float> logits{std::log(0.4f), std::log(0.3f), std::log(0.3f)};
  for (params.seed = 0; params.seed < 50; ++params.seed) {
    EXPECT_EQ(sample(params, logits)->token, TokenId{0});
  }
}

TEST(Sampler, AppliesTemperatureAfterTruncation) {
  // Top-p 0.6 keeps one token of {0.7, 0.2, 0.1}; at temperature 100 first it would keep two.
  auto params = plain();
  params.temperature = 100;
  params.top_p = 0.6;
  const std::vector<float> logits{std::log(0.7f), std::log(0.2f), std::log(0.1f)};
  for (params.seed = 0; params.seed < 50; ++params.seed) {
    EXPECT_EQ(sample(params, logits)->token, TokenId{0});
  }
}

// --- distribution

double chi_square(const std::vector<int>& counts, const std::vector<double>& probabilities,
                  int n_draws) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = n_draws * probabilities[i];
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

TEST(Sampler, DrawsFromTheSoftmaxAcrossPositionsAndAcrossSeeds) {
  constexpr int n_draws = 40000;
  constexpr double quantile_9999 = 25.74;  // chi-square, 5 degrees of freedom
  const std::vector<double> probabilities{0.05, 0.3, 0.02, 0.4, 0.2, 0.03};
  std::vector<float> logits(probabilities.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(std::log(probabilities[i])) + 5.0f;
  }
  Sampler sampler(logits.size());
  std::vector<int> by_position(6);
  std::vector<int> by_seed(6);
  auto params = plain();
  for (int i = 0; i < n_draws; ++i) {
    params.seed = 1;
    ++by_position[token_of(sampler.sample(params, logits, {}, i))];
    params.seed = static_cast<std::uint64_t>(i);
    ++by_seed[token_of(sampler.sample(params, logits, {}, 1))];
  }
  EXPECT_LT(chi_square(by_position, probabilities, n_draws), quantile_9999);
  EXPECT_LT(chi_square(by_seed, probabilities, n_draws), quantile_9999);
}

TEST(Sampler, DrawsFromTheTruncatedAndHeatedDistribution) {
  constexpr int n_draws = 40000;
  constexpr double quantile_9999 = 18.42;  // chi-square, 2 degrees of freedom
  auto params = plain();
  params.top_k = 3;
  params.temperature = 2;
  const std::vector<float> logits{2, 0, 4, 1, 3};
  const double total = std::exp(1.0) + std::exp(2.0) + std::exp(1.5);
  Sampler sampler(logits.size());
  std::vector<int> counts(5);
  for (int i = 0; i < n_draws; ++i) {
    ++counts[token_of(sampler.sample(params, logits, {}, i))];
  }
  EXPECT_EQ(counts[1] + counts[3], 0);
  EXPECT_LT(
      chi_square({counts[0], counts[2], counts[4]},
                 {std::exp(1.0) / total, std::exp(2.0) / total, std::exp(1.5) / total}, n_draws),
      quantile_9999);
}

TEST(Sampler, DrawsAtNeighbouringPositionsAndSeedsAreIndependent) {
  constexpr int n_draws = 40000;
  constexpr double quantile_9999 = 44.26;  // chi-square, 15 degrees of freedom
  const std::vector<float> logits{0, 0, 0, 0};
  Sampler sampler(logits.size());
  const auto draw = [&](std::uint64_t seed, std::int64_t position) {
    auto params = plain();
    params.seed = seed;
    return token_of(sampler.sample(params, logits, {}, position));
  };
  std::vector<int> by_position(16);
  std::vector<int> by_seed(16);
  for (std::int64_t even = 0; even < 2 * n_draws; even += 2) {
    const auto seed = static_cast<std::uint64_t>(even);
    ++by_position[draw(3, even) * 4 + draw(3, even + 1)];
    ++by_seed[draw(seed, 3) * 4 + draw(seed + 1, 3)];
  }
  const std::vector<double> equal(16, 1.0 / 16);
  EXPECT_LT(chi_square(by_position, equal, n_draws), quantile_9999);
  EXPECT_LT(chi_square(by_seed, equal, n_draws), quantile_9999);
}

TEST(Sampler, ReportsTheLogarithmOfTheFinalProbability) {
  auto params = plain();
  params.top_k = 2;
  const auto choice = sample(params, {std::log(0.6f), std::log(0.2f), std::log(0.1f)});
  const double expected = choice->token == TokenId{0} ? std::log(0.75) : std::log(0.25);
  EXPECT_NEAR(choice->log_probability, expected, 1e-6);
}

// --- a function of its arguments

TEST(Sampler, DoesNotDependOnWhatItSampledBefore) {
  std::vector<float> logits(500);
  std::vector<TokenId> history;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 7919) % 503) * 0.02f;
    history.push_back(TokenId{static_cast<int>(i % 37)});
  }
  const SamplingParams params{.repeat_penalty = 1.2, .frequency_penalty = 0.1, .seed = 9};
  const SamplingParams other{.temperature = 3,
                             .top_k = 0,
                             .typical_p = 0.5,
                             .repeat_penalty = 0.9,
                             .presence_penalty = 1,
                             .repeat_last_n = -1,
                             .logit_bias = {{TokenId{5}, -100}}};
  Sampler shared(logits.size());
  for (std::int64_t position = 0; position < 50; ++position) {
    const auto alone = sample(params, logits, {.tokens = history}, position);
    ASSERT_TRUE(shared.sample(other, logits, {.tokens = history}, position));
    EXPECT_EQ(shared.sample(params, logits, {.tokens = history}, position), alone);
  }
}

// --- faults

TEST(Sampler, RefusesNanWithItsPlace) {
  for (const double temperature : {0.0, 0.8}) {
    const auto choice = sample({.temperature = temperature}, {1, 2, nan}, {}, 17);
    ASSERT_FALSE(choice);
    EXPECT_EQ(choice.error().code, ErrorCode::internal);
    EXPECT_EQ(choice.error().message,
              "position 17: the logit of token 2 is nan, expected a number");
  }
}

TEST(Sampler, RefusesNanOfABannedToken) {
  const SamplingParams params{.temperature = 0, .logit_bias = {{TokenId{1}, -100}}};
  EXPECT_FALSE(sample(params, {1, nan}));
}

TEST(Sampler, RefusesPlusInfinity) {
  EXPECT_FALSE(sample(plain(), {1, infinity}));
}

TEST(Sampler, RefusesAnEditThatOverflows) {
  const std::vector<TokenId> history{TokenId{0}};
  EXPECT_FALSE(sample({.repeat_penalty = 1e-6}, {3e38f, 1}, {.tokens = history}));
}

TEST(Sampler, RefusesWhenEveryTokenIsBanned) {
  for (const double temperature : {0.0, 0.8}) {
    const auto choice = sample({.temperature = temperature}, {-infinity, -infinity});
    ASSERT_FALSE(choice);
    EXPECT_EQ(choice.error().code, ErrorCode::internal);
    EXPECT_THAT(choice.error().message, HasSubstr("every token is banned"));
    EXPECT_FALSE(sample({.temperature = temperature, .logit_bias = {{TokenId{0}, -100}}}, {1}));
  }
}

TEST(Sampler, NeverDrawsABannedToken) {
  auto params = plain();
  params.temperature = 100;
  params.min_keep = 4;
  params.top_p = 0.5;
  for (params.seed = 0; params.seed < 200; ++params.seed) {
    const auto choice = sample(params, {1, -infinity, 1, -infinity});
    EXPECT_TRUE(choice->token == TokenId{0} || choice->token == TokenId{2});
  }
}

TEST(Sampler, AlwaysFindsATokenAmongExtremeLogits) {
  const std::array extremes{-3e38f, -1e-40f, 0.0f, 1e-40f, 88.0f, 3e38f, -infinity};
  for (int round = 0; round < 500; ++round) {
    std::vector<float> logits{extremes.at(static_cast<std::size_t>(round) % 6)};
    for (int i = 0; i < 6; ++i) {
      logits.push_back(extremes.at(static_cast<std::size_t>((round + 3) * (i + 5) * 31) % 7));
    }
    const SamplingParams params{.temperature = round % 2 == 0 ? 1e-300 : 100,
                                .top_k = round % 5,
                                .top_p = round % 3 == 0 ? 0.01 : 1,
                                .min_p = round % 7 == 0 ? 1 : 0.0,
                                .typical_p = round % 4 == 0 ? 0.01 : 1,
                                .seed = static_cast<std::uint64_t>(round)};
    const auto choice = sample(params, logits);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_GT(logits[token_of(choice)], -infinity);
    EXPECT_LE(choice->log_probability, 0);
  }
}

}  // namespace
}  // namespace hearth::sampling
