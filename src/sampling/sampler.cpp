#include "sampling/sampler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/fail.h"
#include "sampling/random.h"
#include "sampling/stages/all_stages.h"

namespace hearth::sampling {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Minus infinity is a ban and passes; NaN and plus infinity are a computation gone wrong.
Result<void> check_number(const LargestValue& largest, std::int64_t position) {
  return largest.is_number() ? Result<void>()
                             : fail(ErrorCode::internal,
                                    "position {}: the logit of token {} is {}, expected a number",
                                    position, largest.index, largest.value);
}

bool edits_logits(const SamplingParams& params) {
  return std::ranges::any_of(logit_stages, [&](const auto& stage) { return stage.acts(params); });
}

bool is_greedy(const SamplingParams& params) {
  return params.temperature <= 0.0;
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

/// As largest_value() has it; the index is the token's id.
LargestValue largest_of(std::span<const Candidate> candidates) {
  LargestValue largest;
  for (const Candidate& candidate : candidates) {
    const LargestValue value{candidate.logit, static_cast<std::size_t>(candidate.token)};
    if (!value.is_number()) {
      return value;
    }
    if (value.value > largest.value) {
      largest = value;
    }
  }
  return largest;
}

}  // namespace

bool takes_largest(const SamplingParams& params) {
  return is_greedy(params) && !edits_logits(params);
}

Result<Choice> choose_largest(const LargestValue& largest, std::int64_t position) {
  HEARTH_TRY(check_number(largest, position));
  if (largest.value == -infinity) {
    return fail(ErrorCode::internal,
                "position {}: every token is banned (all logits are -infinity)", position);
  }
  return Choice{.token = TokenId{static_cast<std::int32_t>(largest.index)}};
}

std::optional<std::int64_t> largest_needed(const SamplingParams& params, std::int64_t n_tokens) {
  constexpr std::int64_t off = std::numeric_limits<std::int32_t>::max();  // as good as all tokens
  std::int64_t needed = 1;
  if (!is_greedy(params)) {
    if (params.top_k <= 0 || params.top_k >= off) {
      return std::nullopt;
    }
    needed = params.top_k;
  }
  for (const LogitStage& stage : logit_stages) {
    if (!stage.acts(params)) {
      continue;
    }
    // So many may fall behind others, which are then at most so many ranks below.
    const auto n_lowered = stage.lowers(params, n_tokens);
    if (!n_lowered) {
      return std::nullopt;
    }
    needed += *n_lowered;
  }
  return needed;
}

Sampler::Sampler(std::size_t n_vocab)
    : logits_(n_vocab),
      sparse_logits_(n_vocab, -infinity),
      counter_(n_vocab),
      candidates_(n_vocab) {
  largest_.reserve(n_vocab);
}

Result<Choice> Sampler::sample(const SamplingParams& params, std::span<const float> logits,
                               const History& history, std::int64_t position) {
  HEARTH_ASSERT(logits.size() == logits_.size());
  LargestValue largest = largest_value(logits);
  HEARTH_TRY(check_number(largest, position));
  std::span<const float> edited = logits;
  if (edits_logits(params)) {
    std::ranges::copy(logits, logits_.begin());
    for (const LogitStage& stage : logit_stages) {
      stage.apply(params, history, counter_, logits_);
    }
    edited = logits_;
    largest = largest_value(edited);  // an edit of a huge logit may overflow
  }
  HEARTH_ASSIGN(const Choice greedy, choose_largest(largest, position));
  if (is_greedy(params)) {
    return greedy;
  }
  candidates_.assign(edited);
  return choose(params, position);
}

Result<Choice> Sampler::sample_largest(const SamplingParams& params,
                                       std::span<const Candidate> largest, const History& history,
                                       std::int64_t position) {
  HEARTH_TRY(check_number(largest_of(largest), position));
  if (edits_logits(params)) {
    for (const Candidate& candidate : largest) {
      sparse_logits_[static_cast<std::size_t>(candidate.token)] = candidate.logit;
    }
    for (const LogitStage& stage : logit_stages) {
      stage.apply(params, history, counter_, sparse_logits_);
    }
    largest_.clear();
    for (const Candidate& candidate : largest) {
      float& logit = sparse_logits_[static_cast<std::size_t>(candidate.token)];
      largest_.push_back({candidate.token, std::exchange(logit, -infinity)});
    }
    largest = largest_;
  }
  HEARTH_ASSIGN(const Choice greedy, choose_largest(largest_of(largest), position));
  if (is_greedy(params)) {
    return greedy;
  }
  candidates_.assign(largest);
  return choose(params, position);
}

Choice Sampler::choose(const SamplingParams& params, std::int64_t position) {
  for (const CandidateStage& stage : candidate_stages) {
    stage.apply(params, candidates_);
  }
  return draw(candidates_, uniform(params.seed, position, Purpose::token));
}

}  // namespace hearth::sampling
