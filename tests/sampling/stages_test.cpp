// Each stage against cases worked out by hand, and against a brute-force reading of its definition
// that sorts everything and computes in double.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/stages/all_stages.h"

namespace hearth::sampling {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<TokenId> ids(std::initializer_list<int> values) {
  std::vector<TokenId> result;
  result.reserve(values.size());
  for (const int value : values) {
    result.push_back(TokenId{value});
  }
  return result;
}

Candidates candidates_of(const std::vector<float>& logits) {
  Candidates candidates(logits.size());
  candidates.assign(logits);
  return candidates;
}

/// Logits whose softmax is exactly proportional to `weights`.
std::vector<float> logits_of(std::initializer_list<double> weights) {
  std::vector<float> logits;
  logits.reserve(weights.size());
  for (const double weight : weights) {
    logits.push_back(static_cast<float>(std::log(weight)));
  }
  return logits;
}

std::vector<int> alive(const Candidates& candidates) {
  std::vector<int> result;
  result.reserve(candidates.size());
  for (const Candidate& candidate : candidates.alive()) {
    result.push_back(static_cast<int>(candidate.token));
  }
  return result;
}

using Stage = void (*)(const SamplingParams&, Candidates&);

std::vector<int> kept(Stage stage, const SamplingParams& params, const std::vector<float>& logits) {
  Candidates candidates = candidates_of(logits);
  stage(params, candidates);
  return alive(candidates);
}

// --- logit bias

TEST(LogitBias, IsAddedAndAddsUp) {
  std::vector<float> logits{1, 2, 3};
  apply_logit_bias({.logit_bias = {{TokenId{0}, 2.5}, {TokenId{2}, -1}, {TokenId{2}, -1}}}, logits);
  EXPECT_THAT(logits, ElementsAre(3.5f, 2, 1));
}

TEST(LogitBias, AtMinusOneHundredOrBelowIsABan) {
  std::vector<float> logits{1, 2, 3};
  apply_logit_bias({.logit_bias = {{TokenId{0}, -100}, {TokenId{1}, -99.5}, {TokenId{2}, -1e9}}},
                   logits);
  EXPECT_THAT(logits, ElementsAre(-infinity, -97.5f, -infinity));
}

TEST(LogitBias, DoesNotLiftABan) {
  std::vector<float> logits{-infinity, 2};
  apply_logit_bias({.logit_bias = {{TokenId{0}, 100}}}, logits);
  EXPECT_THAT(logits, ElementsAre(-infinity, 2));
}

// --- penalties

std::vector<float> penalised(const SamplingParams& params, std::vector<float> logits,
                             const std::vector<TokenId>& tokens, std::size_t n_prompt = 0) {
  TokenCounter counter(logits.size());
  apply_penalties(params, {.tokens = tokens, .n_prompt = n_prompt}, counter, logits);
  return logits;
}

TEST(RepeatPenalty, DividesPositiveAndMultipliesOtherLogitsOncePerDistinctToken) {
  EXPECT_THAT(penalised({.repeat_penalty = 2}, {4, -4, 0, 4}, ids({0, 0, 0, 1, 2})),
              ElementsAre(2, -8, 0, 4));
}

TEST(RepeatPenalty, SeesTheLastTokensOfPromptAndOutput) {
  const SamplingParams params{.repeat_penalty = 2, .repeat_last_n = 2};
  EXPECT_THAT(penalised(params, {4, 4, 4}, ids({0, 1, 2}), 2), ElementsAre(4, 2, 2));
}

TEST(RepeatPenalty, WindowOfZeroIsEmptyAndOfMinusOneIsEverything) {
  const std::vector<TokenId> history(100, TokenId{1});
  EXPECT_THAT(penalised({.repeat_penalty = 2, .repeat_last_n = 0}, {4, 4}, history),
              ElementsAre(4, 4));
  std::vector<TokenId> old_token = history;
  old_token.front() = TokenId{0};
  EXPECT_THAT(penalised({.repeat_penalty = 2, .repeat_last_n = 64}, {4, 4}, old_token),
              ElementsAre(4, 2));
  EXPECT_THAT(penalised({.repeat_penalty = 2, .repeat_last_n = -1}, {4, 4}, old_token),
              ElementsAre(2, 2));
}

TEST(FrequencyAndPresencePenalty, SubtractCountsAndAConstant) {
  const SamplingParams params{.frequency_penalty = 0.5, .presence_penalty = 0.25};
  EXPECT_THAT(penalised(params, {4, -4, 4}, ids({0, 0, 0, 1})), ElementsAre(2.25f, -4.75f, 4));
}

TEST(FrequencyAndPresencePenalty, ActAfterTheRepeatPenalty) {
  const SamplingParams params{.repeat_penalty = 2, .presence_penalty = 1};
  EXPECT_THAT(penalised(params, {4, 1}, ids({0, 1})), ElementsAre(1, -0.5f));
}

TEST(FrequencyAndPresencePenalty, CountOutputOnlyOnRequest) {
  const std::vector<TokenId> history = ids({0, 0, 1, 2});
  const SamplingParams window{.presence_penalty = 1};
  const SamplingParams output{.presence_penalty = 1, .count_scope = CountScope::output};
  EXPECT_THAT(penalised(window, {4, 4, 4}, history, 2), ElementsAre(3, 3, 3));
  EXPECT_THAT(penalised(output, {4, 4, 4}, history, 2), ElementsAre(4, 3, 3));
  EXPECT_THAT(penalised(output, {4, 4, 4}, history, 4), ElementsAre(4, 4, 4));
}

TEST(FrequencyPenalty, OfTheOutputIgnoresTheWindow) {
  const std::vector<TokenId> history(100, TokenId{0});
  const SamplingParams params{
      .frequency_penalty = 1, .repeat_last_n = 8, .count_scope = CountScope::output};
  EXPECT_THAT(penalised(params, {4}, history), ElementsAre(-96));
}

TEST(Penalties, LeaveBannedTokensBanned) {
  const SamplingParams params{.repeat_penalty = 0.5, .frequency_penalty = -1};
  EXPECT_THAT(penalised(params, {-infinity, 1}, ids({0})), ElementsAre(-infinity, 1));
}

// --- top-k

TEST(TopK, KeepsTheLargestInOrderOfIds) {
  EXPECT_THAT(kept(apply_top_k, {.top_k = 2}, {1, 5, 3, 4}), ElementsAre(1, 3));
}

TEST(TopK, BreaksTiesAtTheEdgeByLowestId) {
  EXPECT_THAT(kept(apply_top_k, {.top_k = 2}, {3, 3, 5, 3}), ElementsAre(0, 2));
}

TEST(TopK, IsOffAtZeroBelowAndFromTheVocabularySizeOn) {
  for (const std::int64_t top_k : {0, -1, 3, 1000}) {
    EXPECT_THAT(kept(apply_top_k, {.top_k = top_k}, {1, 2, 3}), ElementsAre(0, 1, 2));
  }
}

// --- top-p

TEST(TopP, KeepsTheTokenThatCrossesTheThreshold) {
  const auto logits = logits_of({0.2, 0.5, 0.3});
  EXPECT_THAT(kept(apply_top_p, {.top_p = 0.4}, logits), ElementsAre(1));
  EXPECT_THAT(kept(apply_top_p, {.top_p = 0.6}, logits), ElementsAre(1, 2));
  EXPECT_THAT(kept(apply_top_p, {.top_p = 0.9}, logits), ElementsAre(0, 1, 2));
}

TEST(TopP, StopsWhereTheSumEqualsTheThreshold) {
  EXPECT_THAT(kept(apply_top_p, {.top_p = 0.5}, {0, 0, 0, 0}), ElementsAre(0, 1));
}

TEST(TopP, KeepsOneTokenAtOrBelowZeroAndIsOffAtOne) {
  EXPECT_THAT(kept(apply_top_p, {.top_p = 0}, {1, 2, 2}), ElementsAre(1));
  EXPECT_THAT(kept(apply_top_p, {.top_p = -1}, {1, 2, 2}), ElementsAre(1));
  EXPECT_THAT(kept(apply_top_p, {.top_p = 1}, {1, 2, 2}), ElementsAre(0, 1, 2));
}

TEST(TopP, HonoursMinKeep) {
  EXPECT_THAT(kept(apply_top_p, {.top_p = 0.1, .min_keep = 2}, {1, 9, 3}), ElementsAre(1, 2));
  EXPECT_THAT(kept(apply_top_p, {.top_p = 0.1, .min_keep = 50}, {1, 9, 3}), ElementsAre(0, 1, 2));
}

// --- min-p

TEST(MinP, IsRelativeToTheMostLikelyAndInclusive) {
  const auto logits = logits_of({0.1, 0.5, 0.4});
  EXPECT_THAT(kept(apply_min_p, {.min_p = 0.15}, logits), ElementsAre(0, 1, 2));
  EXPECT_THAT(kept(apply_min_p, {.min_p = 0.3}, logits), ElementsAre(1, 2));
  EXPECT_THAT(kept(apply_min_p, {.min_p = 0.9}, logits), ElementsAre(1));
  EXPECT_THAT(kept(apply_min_p, {.min_p = 1}, {2, 1, 2}), ElementsAre(0, 2));
}

TEST(MinP, IsOffAtZero) {
  EXPECT_THAT(kept(apply_min_p, {.min_p = 0}, {0, 500}), ElementsAre(0, 1));
}

TEST(MinP, HonoursMinKeep) {
  EXPECT_THAT(kept(apply_min_p, {.min_p = 0.9, .min_keep = 2}, {1, 9, 3}), ElementsAre(1, 2));
}

// --- typical

TEST(Typical, PrefersTheTokenNearestTheEntropyToTheMostLikelyOne) {
  // H = 0.94; -ln p = 1.39, 0.51, 1.90: distances 0.45, 0.43, 0.96.
  const auto logits = logits_of({0.25, 0.6, 0.15});
  EXPECT_THAT(kept(apply_typical, {.typical_p = 0.5}, logits), ElementsAre(1));
  // H = 1.15: the token of 0.7 (-ln p = 0.36) is 0.79 away, those of 0.05 (3.00) are 1.85.
  const auto peaked = logits_of({0.05, 0.05, 0.7, 0.05, 0.05, 0.05, 0.05});
  EXPECT_THAT(kept(apply_typical, {.typical_p = 0.3}, peaked), ElementsAre(2));
  // H = 2.05: the token of 0.4 (-ln p = 0.92) is 1.14 away, those of 0.06 (2.81) only 0.76.
  const auto flat = logits_of({0.4, 0.06, 0.06, 0.06, 0.06, 0.06, 0.06, 0.06, 0.06, 0.06, 0.06});
  EXPECT_THAT(kept(apply_typical, {.typical_p = 0.1}, flat), ElementsAre(1, 2));
}

TEST(Typical, NeedsMoreThanTheThresholdWhereTopPNeedsTheThreshold) {
  EXPECT_THAT(kept(apply_typical, {.typical_p = 0.5}, {0, 0, 0, 0}), ElementsAre(0, 1, 2));
}

TEST(Typical, HonoursMinKeepAndIsOffAtOne) {
  EXPECT_THAT(kept(apply_typical, {.typical_p = 0.1, .min_keep = 3}, {0, 0, 0, 0}),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(kept(apply_typical, {.typical_p = 1}, {0, 9}), ElementsAre(0, 1));
}

// --- temperature

TEST(Temperature, DividesDifferencesOfLogits) {
  Candidates candidates = candidates_of({1, 3, 2});
  apply_temperature({.temperature = 0.5}, candidates);
  EXPECT_EQ(candidates.alive()[0].logit, -4);
  EXPECT_EQ(candidates.alive()[1].logit, 0);
  EXPECT_EQ(candidates.alive()[2].logit, -2);
}

TEST(Temperature, CloseToZeroDoesNotOverflow) {
  Candidates candidates = candidates_of({-3e38f, 3e38f});
  apply_temperature({.temperature = 1e-300}, candidates);
  const Softmax distribution = candidates.softmax();
  EXPECT_EQ(distribution.weights[1], 1);
  EXPECT_LT(distribution.weights[0], 1e-30f);
}

// --- all truncating stages against brute force on random logits

std::vector<double> brute_softmax(const std::vector<float>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  p.reserve(logits.size());
  for (const float logit : logits) {
    p.push_back(std::exp(logit - largest));
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) {
    x /= total;
  }
  return p;
}

/// Indices of `keys` sorted by key, ties in order of index.
std::vector<std::size_t> sorted_by(const std::vector<double>& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return keys[a] < keys[b] || (keys[a] == keys[b] && a < b);
  });
  return order;
}

std::vector<int> sorted_prefix(const std::vector<std::size_t>& order, std::size_t count) {
  std::vector<int> result(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size())));
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<double> negated(std::vector<double> values) {
  for (double& value : values) {
    value = -value;
  }
  return values;
}

std::vector<int> brute_top_k(const SamplingParams& params, const std::vector<float>& logits) {
  return sorted_prefix(sorted_by(negated({logits.begin(), logits.end()})),
                       static_cast<std::size_t>(params.top_k));
}

std::vector<int> brute_top_p(const SamplingParams& params, const std::vector<float>& logits) {
  const auto p = brute_softmax(logits);
  const auto order = sorted_by(negated(p));
  std::size_t count = 0;
  for (double before = 0.0; count < order.size() && before < params.top_p; ++count) {
    before += p[order[count]];
  }
  return sorted_prefix(order, count);
}

std::vector<int> brute_min_p(const SamplingParams& params, const std::vector<float>& logits) {
  const auto p = brute_softmax(logits);
  const double largest = *std::max_element(p.begin(), p.end());
  std::vector<int> result;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] >= params.min_p * largest) {
      result.push_back(static_cast<int>(i));
    }
  }
  return result;
}

std::vector<int> brute_typical(const SamplingParams& params, const std::vector<float>& logits) {
  const auto p = brute_softmax(logits);
  double entropy = 0.0;
  for (const double x : p) {
    entropy -= x * std::log(x);
  }
  std::vector<double> distance;
  distance.reserve(p.size());
  for (const double x : p) {
    distance.push_back(std::abs(-std::log(x) - entropy));
  }
  const auto order = sorted_by(distance);
  std::size_t count = 0;
  for (double mass = 0.0; count < order.size() && mass <= params.typical_p; ++count) {
    mass += p[order[count]];
  }
  return sorted_prefix(order, count);
}

struct Pair {
  Stage stage;
  std::vector<int> (*brute)(const SamplingParams&, const std::vector<float>&);
};

TEST(TruncatingStages, AgreeWithBruteForceOnRandomLogits) {
  std::mt19937 random(1);  // its output is fixed by the standard; the distributions below are not
  const auto number = [&] { return static_cast<double>(random()) * 0x1p-32; };
  for (int round = 0; round < 200; ++round) {
    const double spread = 0.2 + 8.0 * number();  // flat ones need the ranking to grow
    std::vector<float> logits(1 + random() % 3000);
    for (float& logit : logits) {
      logit = static_cast<float>(spread * (number() + number() + number() - 1.5));
    }
    const SamplingParams params{.top_k = 1 + static_cast<std::int64_t>(random() % 3000),
                                .top_p = number(),
                                .min_p = number() * number(),
                                .typical_p = 0.01 + 0.98 * number()};
    for (const Pair& pair : {Pair{apply_top_k, brute_top_k}, Pair{apply_top_p, brute_top_p},
                             Pair{apply_min_p, brute_min_p}, Pair{apply_typical, brute_typical}}) {
      EXPECT_THAT(kept(pair.stage, params, logits), ElementsAreArray(pair.brute(params, logits)))
          << "round " << round;
    }
  }
}

TEST(Stages, ActInTheDocumentedOrder) {
  std::vector<std::string_view> names;
  names.reserve(logit_stages.size() + candidate_stages.size());
  for (const LogitStage& stage : logit_stages) {
    names.push_back(stage.name);
  }
  for (const CandidateStage& stage : candidate_stages) {
    names.push_back(stage.name);
  }
  EXPECT_THAT(names, ElementsAre("logit_bias", "penalties", "top_k", "typical", "top_p", "min_p",
                                 "temperature"));
}

}  // namespace
}  // namespace hearth::sampling
