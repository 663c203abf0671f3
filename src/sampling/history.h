#pragma once
/// The tokens before the one to choose.

#include <cstddef>
#include <span>

#include "base/token_id.h"

namespace hearth::sampling {

struct History {
  std::span<const TokenId> tokens;  // prompt, then output
  std::size_t n_prompt = 0;         // how many of them are the prompt

  [[nodiscard]] std::span<const TokenId> output() const {
    return n_prompt < tokens.size() ? tokens.subspan(n_prompt) : std::span<const TokenId>{};
  }
};

}  // namespace hearth::sampling
