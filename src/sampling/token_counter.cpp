#include "sampling/token_counter.h"

namespace hearth::sampling {

void TokenCounter::count(std::span<const TokenId> tokens) {
  for (const TokenId token : distinct_) {
    counts_[static_cast<std::size_t>(token)] = 0;
  }
  distinct_.clear();
  for (const TokenId token : tokens) {
    const auto index = static_cast<std::size_t>(token);  // a negative id becomes too large
    if (index >= counts_.size()) {
      continue;
    }
    if (counts_[index]++ == 0) {
      distinct_.push_back(token);
    }
  }
}

}  // namespace hearth::sampling
