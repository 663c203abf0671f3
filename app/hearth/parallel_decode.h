#pragma once
/// Several sequences that go on in the same steps, as `hearth bench --parallel` times them.

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/engine.h"
#include "sampling/params.h"

namespace hearth::app {

/// Tokens that sequences with prompts of `n_prompt` tokens may have chosen before the last of them
/// has read its own. `tokens_per_step`: of a sequence, at most. An engine that answers them needs a
/// context of n_prompt, that many and those that are timed.
std::int64_t parallel_lead(std::int64_t n_prompt, std::int64_t n_sequences, std::int64_t max_rows,
                           std::int64_t tokens_per_step);

struct ParallelAnswers {
  std::vector<std::vector<TokenId>> tokens;  // of each sequence
  std::chrono::duration<double> time{};      // in which each chose all but the first of them

  /// Tokens per second, of all sequences together.
  [[nodiscard]] double speed() const;
};

/// Without end: `n` tokens, at least two, for each prompt, all of which have the same
/// length. Time begins when all have their first token, so it is that of n - 1 steps in which all
/// decode; fewer where guesses are right. Errors: those of Engine::submit and of its steps.
Result<ParallelAnswers> decode_in_parallel(engine::Engine& engine,
                                           std::vector<std::vector<TokenId>> prompts,
                                           const sampling::SamplingParams& sampling,
                                           std::int64_t n);

}  // namespace hearth::app
