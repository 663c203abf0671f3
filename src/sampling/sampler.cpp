#include "sampling/sampler.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/fail.h"
#include "sampling/random.h"
#include "sampling/stages/all_stages.h"

namespace hearth::sampling {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Minus infinity is a ban and passes; NaN and plus infinity are a computation gone wrong.
Result<void> check(std::span<const float> logits, std::int64_t position) {
  const auto is_wrong = [](float logit) { return !(logit < infinity); };
  const auto wrong = std::find_if(logits.begin(), logits.end(), is_wrong);
  if (wrong == logits.end()) {
    return {};
  }
  return fail(ErrorCode::internal, "position {}: the logit of token {} is {}, expected a number",
              position, wrong - logits.begin(), *wrong);
}

Failure nothing_left(std::int64_t position) {
  return fail(ErrorCode::internal, "position {}: every token is banned (all logits are -infinity)",
              position);
}

/// The lowest id among the largest logits.
Result<Choice> choose_greedily(std::span<const float> logits, std::int64_t position) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (best == logits.end() || *best == -infinity) {
    return nothing_left(position);
  }
  return Choice{.token = TokenId{static_cast<std::int32_t>(best - logits.begin())}};
}

/// Inverts the cumulative distribution over ascending token ids at `uniform_number` in [0, 1).
Choice draw(Candidates& candidates, double uniform_number) {
  const Softmax distribution = candidates.softmax();
  const double target = uniform_number * distribution.total;
  std::size_t chosen = 0;
  double mass = distribution.weights[chosen];
  while (mass <= target) {  // ends before the last weight: the mass there is the total
    ++chosen;
    HEARTH_ASSERT(chosen < candidates.size());
    mass += distribution.weights[chosen];
  }
  const Candidate& candidate = candidates.alive()[chosen];
  return {.token = candidate.token,
          .log_probability = distribution.log_probability(candidate.logit)};
}

}  // namespace

Sampler::Sampler(std::size_t n_vocab) : logits_(n_vocab), counter_(n_vocab), candidates_(n_vocab) {}

Result<Choice> Sampler::sample(const SamplingParams& params, std::span<const float> logits,
                               const History& history, std::int64_t position) {
  HEARTH_ASSERT(logits.size() == logits_.size());
  HEARTH_TRY(check(logits, position));
  std::copy(logits.begin(), logits.end(), logits_.begin());
  for (const LogitStage& stage : logit_stages) {
    stage.apply(params, history, counter_, logits_);
  }
  HEARTH_TRY(check(logits_, position));  // an edit of a huge logit may have overflowed
  if (params.temperature <= 0.0) {
    return choose_greedily(logits_, position);
  }
  candidates_.assign(logits_);
  if (candidates_.size() == 0) {
    return nothing_left(position);
  }
  for (const CandidateStage& stage : candidate_stages) {
    stage.apply(params, candidates_);
  }
  return draw(candidates_, uniform(params.seed, position, Purpose::token));
}

}  // namespace hearth::sampling
