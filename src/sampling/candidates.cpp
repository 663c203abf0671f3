#include "sampling/candidates.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "base/assert.h"

namespace hearth::sampling {
namespace {

/// Of tokens that may be chosen.
bool is_alive(float logit) {
  return logit > -std::numeric_limits<float>::infinity();
}

}  // namespace

Candidates::Candidates(std::size_t n_vocab) {
  alive_.reserve(n_vocab);
  ranking_.reserve(n_vocab);
  weights_.reserve(n_vocab);
}

void Candidates::assign(std::span<const float> logits) {
  alive_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (is_alive(logits[i])) {
      alive_.push_back({TokenId{static_cast<std::int32_t>(i)}, logits[i]});
    }
  }
}

void Candidates::assign(std::span<const Candidate> candidates) {
  alive_.clear();
  std::ranges::copy_if(candidates, std::back_inserter(alive_), is_alive, &Candidate::logit);
}

float Candidates::max_logit() const {
  HEARTH_ASSERT(!alive_.empty());
  float largest = alive_.front().logit;
  for (const Candidate& candidate : alive_) {
    largest = std::max(largest, candidate.logit);
  }
  return largest;
}

Softmax Candidates::softmax() {
  const float largest = max_logit();
  weights_.clear();
  for (const Candidate& candidate : alive_) {
    weights_.push_back(candidate.logit);
  }
  return softmax_in_place(weights_, largest);
}

}  // namespace hearth::sampling
