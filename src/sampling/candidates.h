#pragma once
/// The tokens that are still alive during one choice, and the ways to thin them out.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "sampling/softmax.h"

namespace hearth::sampling {

struct Candidate {
  TokenId token{};
  float logit = 0.0f;
};

/// The order in which tokens are preferred: larger logit first, ties to the lower id. A total
/// order.
[[nodiscard]] inline bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

/// Always in ascending order of ids, so that sums over it never depend on how it was thinned out.
class Candidates {
 public:
  /// Allocates for `n_vocab` tokens; nothing below allocates again.
  explicit Candidates(std::size_t n_vocab);

  /// Every token whose logit is above minus infinity; `logits` is indexed by token id.
  void assign(std::span<const float> logits);

  /// The same of some tokens, which are in ascending order of ids.
  void assign(std::span<const Candidate> candidates);

  [[nodiscard]] std::span<Candidate> alive() { return alive_; }
  [[nodiscard]] std::span<const Candidate> alive() const { return alive_; }
  [[nodiscard]] std::size_t size() const { return alive_.size(); }

  /// The largest logit of the candidates, of which there is at least one.
  [[nodiscard]] float max_logit() const;

  /// The distribution over the candidates, of which there is at least one. Its weights lie parallel
  /// to alive() as it is now, and stay valid until the next call.
  [[nodiscard]] Softmax softmax();

  /// Keeps the candidates whose index in alive() satisfies `is_kept`.
  template <class Predicate>
  void keep_where(Predicate is_kept) {
    std::size_t n_kept = 0;
    for (std::size_t i = 0; i < alive_.size(); ++i) {
      if (is_kept(i)) {
        alive_[n_kept++] = alive_[i];
      }
    }
    alive_.resize(n_kept);
  }

  /// Keeps the first `count` of the ranking `before`, a total order.
  template <class Before>
  void keep_first(std::size_t count, Before before) {
    if (count < alive_.size()) {
      rank(count, before);
      keep_ranking(before);
    }
  }

  /// Keeps the shortest prefix of the ranking `before` (a total order) whose summed weight in
  /// `distribution` is `enough`, or everything. `min_keep` bounds the prefix from below.
  template <class Before, class Enough>
  void keep_mass(const Softmax& distribution, Before before, Enough enough, std::size_t min_keep) {
    constexpr std::size_t first_guess = 256;
    constexpr std::size_t growth = 8;
    // Rank a few; the mass is nearly always found there. Else rank more.
    for (std::size_t n_ranked = first_guess;; n_ranked *= growth) {
      rank(std::min(n_ranked, alive_.size()), before);
      double mass = 0.0;
      for (std::size_t i = 0; i < ranking_.size(); ++i) {
        mass += distribution.weight(ranking_[i].logit);
        if (enough(mass) && i + 1 >= min_keep) {
          ranking_.resize(i + 1);
          return keep_ranking(before);
        }
      }
      if (ranking_.size() == alive_.size()) {
        return;
      }
    }
  }

 private:
  /// ranking_ becomes the first `count` candidates in the order `before`.
  template <class Before>
  void rank(std::size_t count, Before before) {
    if (count <= largest_heap) {
      ranking_.resize(count);
      std::partial_sort_copy(alive_.begin(), alive_.end(), ranking_.begin(), ranking_.end(),
                             before);
      return;
    }
    ranking_ = alive_;
    const auto end = ranking_.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(ranking_.begin(), end, ranking_.end(), before);
    std::sort(ranking_.begin(), end, before);
    ranking_.resize(count);
  }

  /// alive_ becomes ranking_, the first candidates in the order `before`.
  template <class Before>
  void keep_ranking(Before before) {
    if (ranking_.size() <= largest_heap) {
      std::sort(ranking_.begin(), ranking_.end(),
                [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
      alive_.swap(ranking_);
    } else {
      const Candidate last = ranking_.back();
      keep_where([&](std::size_t i) { return !before(last, alive_[i]); });
    }
  }

  static constexpr std::size_t largest_heap = 1024;  // beyond it, other ways are faster

  std::vector<Candidate> alive_;
  std::vector<Candidate> ranking_;
  std::vector<float> weights_;
};

}  // namespace hearth::sampling
