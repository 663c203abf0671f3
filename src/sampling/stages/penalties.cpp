#include "sampling/stages/penalties.h"

#include <algorithm>
#include <cstddef>

namespace hearth::sampling {
namespace {

std::span<const TokenId> window(const SamplingParams& params, const History& history) {
  if (params.repeat_last_n < 0) {
    return history.tokens;
  }
  const auto size = static_cast<std::size_t>(params.repeat_last_n);
  return history.tokens.last(std::min(size, history.tokens.size()));
}

bool penalises_occurrences(const SamplingParams& params) {
  return params.frequency_penalty != 0.0 || params.presence_penalty != 0.0;
}

void penalise_repetition(double penalty, const TokenCounter& counter, std::span<float> logits) {
  for (const TokenId token : counter.distinct()) {
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = static_cast<float>(logit > 0.0f ? logit / penalty : logit * penalty);
  }
}

void penalise_occurrences(const SamplingParams& params, const TokenCounter& counter,
                          std::span<float> logits) {
  for (const TokenId token : counter.distinct()) {
    float& logit = logits[static_cast<std::size_t>(token)];
    const double penalty =
        counter.occurrences(token) * params.frequency_penalty + params.presence_penalty;
    logit = static_cast<float>(logit - penalty);
  }
}

}  // namespace

bool penalises(const SamplingParams& params) {
  return params.repeat_penalty != 1.0 || penalises_occurrences(params);
}

std::optional<std::int64_t> lowered_by_penalties(const SamplingParams& params,
                                                 std::int64_t n_tokens) {
  if (params.repeat_penalty < 1.0 || params.frequency_penalty < 0.0 ||
      params.presence_penalty < 0.0) {
    return std::nullopt;
  }
  const bool counts_output =
      penalises_occurrences(params) && params.count_scope == CountScope::output;
  const bool is_all = counts_output || params.repeat_last_n < 0;
  return is_all ? n_tokens : std::min(params.repeat_last_n, n_tokens);
}

void apply_penalties(const SamplingParams& params, const History& history, TokenCounter& counter,
                     std::span<float> logits) {
  if (params.repeat_penalty != 1.0) {
    counter.count(window(params, history));
    penalise_repetition(params.repeat_penalty, counter, logits);
  }
  if (penalises_occurrences(params)) {
    const bool output_only = params.count_scope == CountScope::output;
    counter.count(output_only ? history.output() : window(params, history));
    penalise_occurrences(params, counter, logits);
  }
}

}  // namespace hearth::sampling
