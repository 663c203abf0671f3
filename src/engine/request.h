#pragma once

#include <cstdint>
#include <vector>

#include "base/token_id.h"
#include "sampling/params.h"

namespace hearth::engine {

/// What to generate: a prompt in tokens and how to go on from it.
struct Request {
  std::vector<TokenId> prompt;  // at least one token
  sampling::SamplingParams sampling;
  std::int64_t max_tokens = -1;           // -1: until the end of generation or of the context
  bool ignore_end_of_generation = false;  // go on after end tokens (benchmarks)
};

enum class FinishReason {
  end_of_generation,  // the model ended its turn
  max_tokens,         // as many tokens as asked for
  context_full,       // prompt and answer fill the context
};

}  // namespace hearth::engine
