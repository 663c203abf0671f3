#pragma once
/// Chooses the next token from logits.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/largest_value.h"
#include "base/result.h"
#include "base/token_id.h"
#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/params.h"
#include "sampling/token_counter.h"

namespace hearth::sampling {

struct Choice {
  TokenId token{};
  /// Natural logarithm of the probability with which the token was drawn, after all stages; 0 for a
  /// greedy choice.
  double log_probability = 0.0;

  bool operator==(const Choice&) const = default;
};

/// Whether choices need nothing of the logits but the largest: greedy ones from logits as they are.
[[nodiscard]] bool takes_largest(const SamplingParams& params);
/// What Sampler::sample() chooses then, from the largest of the logits; with the same errors.
Result<Choice> choose_largest(const LargestValue& largest, std::int64_t position);

/// How many of the largest logits are enough to make a choice, whatever the others are, after a
/// history of up to `n_tokens` tokens; nullopt where any token may be chosen.
[[nodiscard]] std::optional<std::int64_t> largest_needed(const SamplingParams& params,
                                                         std::int64_t n_tokens);

/// Owns nothing but working memory (44 bytes for each token of the vocabulary), so one serves all
/// sequences of a thread and a rolled-back draft leaves nothing to undo. One thread at a time.
class Sampler {
 public:
  explicit Sampler(std::size_t n_vocab);

  /// A function of its arguments alone. `logits` has one entry for each token; `params` have passed
  /// validate(); `position` is the place of the chosen token in its sequence. Allocates nothing.
  /// Error internal: a logit is NaN or +infinity, or no token is left.
  Result<Choice> sample(const SamplingParams& params, std::span<const float> logits,
                        const History& history, std::int64_t position);
  /// The same choice, or the same error, from the largest logits alone: as many as largest_needed()
  /// says, or all there are. In ascending order of ids; of equal logits those of the lower ids, and
  /// what is NaN or +infinity before all others.
  Result<Choice> sample_largest(const SamplingParams& params, std::span<const Candidate> largest,
                                const History& history, std::int64_t position);

 private:
  /// From candidates_, which no stage has thinned out yet.
  Choice choose(const SamplingParams& params, std::int64_t position);

  std::vector<float> logits_;         // indexed by token id
  std::vector<float> sparse_logits_;  // indexed by token id; minus infinity between calls
  std::vector<Candidate> largest_;
  TokenCounter counter_;
  Candidates candidates_;
};

}  // namespace hearth::sampling
