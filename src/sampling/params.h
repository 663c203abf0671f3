#pragma once
/// How one request wants its tokens chosen. docs/sampling.md has every definition.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace hearth::sampling {

/// Added to the logit of one token. At or below -100 the token is never chosen.
struct TokenBias {
  TokenId token{};
  double bias = 0.0;

  bool operator==(const TokenBias&) const = default;
};

/// Which tokens the frequency and presence penalties count.
enum class CountScope {
  window,  // the last repeat_last_n tokens, prompt included
  output,  // every token generated so far
};

/// The defaults are those of the OpenAI family of endpoints; other families set their own.
struct SamplingParams {
  double temperature =
      0.8;                  // at or below 0: the largest logit wins, stages after penalties skipped
  std::int64_t top_k = 40;  // at or below 0: off
  double top_p = 0.95;      // 1: off; at or below 0: only the most likely token
  double min_p = 0.05;      // 0: off
  double typical_p = 1.0;   // 1: off
  std::int64_t min_keep =
      0;  // typical, top-p and min-p leave at least so many tokens, at least one

  double repeat_penalty = 1.0;  // 1: off
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  std::int64_t repeat_last_n = 64;  // tokens in the window; 0: none, -1: the whole history
  CountScope count_scope = CountScope::window;
  std::vector<TokenBias> logit_bias;  // several entries for one token add up

  std::uint64_t seed = 0;  // a request without a seed takes random_seed()

  bool operator==(const SamplingParams&) const = default;
};

/// Error invalid_argument naming the field, its range and its value. Tokens must lie in [0,
/// n_vocab).
Result<void> validate(const SamplingParams& params, std::int64_t n_vocab);

}  // namespace hearth::sampling
