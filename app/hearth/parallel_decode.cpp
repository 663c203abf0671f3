#include "parallel_decode.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/assert.h"
#include "base/checked.h"

namespace hearth::app {
namespace {

using Clock = std::chrono::steady_clock;

Result<void> take_token(engine::TokenStream& stream, std::vector<TokenId>& tokens) {
  HEARTH_ASSIGN(const auto token, stream.next());
  HEARTH_ASSERT(token.has_value());  // the request has room for it and no end
  tokens.push_back(*token);
  return {};
}

}  // namespace

std::int64_t parallel_lead(std::int64_t n_prompt, std::int64_t n_sequences, std::int64_t max_rows,
                           std::int64_t tokens_per_step) {
  // While somebody reads, all others take a row each, and readers at least one.
  const std::int64_t reading_rows = max_rows - n_sequences + 1;
  const std::int64_t n_steps = std::min(n_prompt, ceil_div(n_sequences * n_prompt, reading_rows));
  return (n_steps - 1) * tokens_per_step;
}

double ParallelAnswers::speed() const {
  const auto n_timed = tokens.size() * (tokens.front().size() - 1);
  return static_cast<double>(n_timed) / time.count();
}

Result<ParallelAnswers> decode_in_parallel(engine::Engine& engine,
                                           std::vector<std::vector<TokenId>> prompts,
                                           const sampling::SamplingParams& sampling,
                                           std::int64_t n) {
  HEARTH_ASSERT(!prompts.empty() && n >= 2);
  std::vector<engine::TokenStream> streams;
  for (auto& prompt : prompts) {
    HEARTH_ASSIGN(auto stream, engine.submit({.prompt = std::move(prompt),
                                              .sampling = sampling,
                                              .ignore_end_of_generation = true}));
    streams.push_back(std::move(stream));
  }
  ParallelAnswers answers;
  answers.tokens.resize(streams.size());
  Clock::time_point start;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::size_t sequence = 0; sequence < streams.size(); ++sequence) {
      HEARTH_TRY(take_token(streams[sequence], answers.tokens[sequence]));
    }
    if (i == 0) {
      start = Clock::now();
    }
  }
  answers.time = Clock::now() - start;
  return answers;
}

}  // namespace hearth::app
