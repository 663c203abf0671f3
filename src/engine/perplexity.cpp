#include "engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "engine/step_block.h"

namespace hearth::engine {
namespace {

/// -ln softmax(logits)[token]
double surprise(std::span<const float> logits, TokenId token) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit - largest));
  }
  return std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(token)] - largest);
}

/// Scores positions [context / 2 + 1, context) of one piece.
Result<void> score_piece(Runner& runner, std::span<const TokenId> piece, StepBlock& step,
                         Perplexity& perplexity) {
  const auto context = static_cast<std::int64_t>(piece.size());
  const auto vocab = static_cast<std::size_t>(runner.model().params().vocab);
  const std::int64_t chunk = std::min(runner.options().max_rows, runner.options().max_logit_rows);
  std::vector<std::int32_t> block_table(
      static_cast<std::size_t>(ceil_div(context, graph::kv_block_tokens)));
  std::iota(block_table.begin(), block_table.end(), 0);
  for (std::int64_t begin = 0; begin < context; begin += chunk) {
    const std::int64_t end = std::min(context, begin + chunk);
    step.clear();
    const auto slot = step.add_sequence(block_table, 0);
    const auto is_scored = [&](std::int64_t position) {
      return position >= context / 2 && position + 1 < context;
    };
    for (std::int64_t position = begin; position < end; ++position) {
      step.add_row(slot, {.token = piece[static_cast<std::size_t>(position)],
                          .position = position,
                          .wants_logits = is_scored(position)});
    }
    HEARTH_ASSIGN(auto logits, runner.run(step.view()));
    for (std::int64_t position = begin; position < end; ++position) {
      if (is_scored(position)) {
        const double nats =
            surprise(logits.first(vocab), piece[static_cast<std::size_t>(position + 1)]);
        if (!std::isfinite(nats)) {
          return fail(ErrorCode::internal, "the logits after position {} are not finite", position);
        }
        logits = logits.subspan(vocab);
        perplexity.sum += nats;
        perplexity.sum_squares += nats * nats;
        ++perplexity.n_scored;
      }
    }
  }
  return {};
}

}  // namespace

double Perplexity::value() const {
  return std::exp(sum / static_cast<double>(n_scored));
}

double Perplexity::error() const {
  const auto n = static_cast<double>(n_scored);
  const double mean = sum / n;
  const double variance = std::max(0.0, sum_squares / n - mean * mean);
  return n_scored > 1 ? value() * std::sqrt(variance / (n - 1)) : 0.0;
}

Result<Perplexity> measure_perplexity(
    Runner& runner, std::span<const TokenId> tokens, std::int64_t context,
    const std::function<void(std::int64_t, std::int64_t, const Perplexity&)>& on_piece) {
  const auto n_tokens = static_cast<std::int64_t>(tokens.size());
  if (context < 2 || n_tokens < 2 * context) {
    return fail(ErrorCode::invalid_argument,
                "the text has {} tokens and the context {}: expected two contexts, {} tokens or "
                "more",
                n_tokens, context, 2 * std::max<std::int64_t>(context, 2));
  }
  const auto& tokenizer = runner.model().tokenizer();
  const std::int64_t n_pieces = n_tokens / context;
  Perplexity perplexity;
  StepBlock step;
  std::vector<TokenId> piece;
  for (std::int64_t i = 0; i < n_pieces; ++i) {
    const auto source =
        tokens.subspan(static_cast<std::size_t>(i * context), static_cast<std::size_t>(context));
    piece.assign(source.begin(), source.end());
    if (tokenizer.adds_bos() && tokenizer.special().bos) {
      piece.front() = *tokenizer.special().bos;
    }
    HEARTH_TRY(score_piece(runner, piece, step, perplexity));
    on_piece(i + 1, n_pieces, perplexity);
  }
  return perplexity;
}

}  // namespace hearth::engine
