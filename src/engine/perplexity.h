#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "engine/runner.h"

namespace hearth::engine {

/// How well a model predicts a text.
struct Perplexity {
  std::int64_t n_scored = 0;
  double sum = 0;          // of -ln p of the scored tokens
  double sum_squares = 0;  // of their squares

  /// exp of the mean of -ln p.
  [[nodiscard]] double value() const;
  /// Standard error of value().
  [[nodiscard]] double error() const;
};

/// Cuts `tokens` into pieces of `context` tokens (a last shorter piece is dropped), replaces the
/// first of each by the begin token if the tokenizer wants one, and scores the second half of each:
/// tokens that have at least half a context before them. So figures compare with those of
/// llama.cpp. The runner must hold `context` positions and give logits for every row.
/// `on_piece(done, total, so far)` is called after each piece. Errors: invalid_argument for a text
/// shorter than two contexts or a context below 2.
Result<Perplexity> measure_perplexity(
    Runner& runner, std::span<const TokenId> tokens, std::int64_t context,
    const std::function<void(std::int64_t, std::int64_t, const Perplexity&)>& on_piece);

}  // namespace hearth::engine
