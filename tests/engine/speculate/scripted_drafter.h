#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/speculate/drafter.h"

namespace hearth::engine {

/// Knows the answers, and gives wrong ones now and then.
class ScriptedDrafter final : public Drafter {
 public:
  /// `answers` are prompts with what follows them.
  ScriptedDrafter(std::vector<std::vector<TokenId>> answers, double wrong, std::uint32_t seed)
      : answers_(std::move(answers)), wrong_(wrong), random_(seed) {}

  void learn(std::vector<std::vector<TokenId>> answers, double wrong) {
    answers_ = std::move(answers);
    wrong_ = wrong;
  }

  [[nodiscard]] std::string description() const override { return "script"; }
  [[nodiscard]] backend::MemoryUse memory() const override { return {}; }
  void forget(std::int32_t /*seat*/) override {}

  Result<std::int64_t> draft(std::span<const DraftTask> tasks) override {
    std::uniform_real_distribution<double> chance(0, 1);
    for (const auto& task : tasks) {
      const auto& answer = answer_beginning_with(task.tokens);
      for (std::int64_t i = 0; i < task.depth; ++i) {
        const std::size_t at = task.tokens.size() + static_cast<std::size_t>(i);
        const bool is_right = at < answer.size() && chance(random_) >= wrong_;
        task.drafts->push_back(is_right ? answer[at] : static_cast<TokenId>(random_() % 30));
      }
    }
    return 0;
  }

 private:
  [[nodiscard]] const std::vector<TokenId>& answer_beginning_with(
      std::span<const TokenId> tokens) const {
    for (const auto& answer : answers_) {
      if (std::equal(tokens.begin(), tokens.end(), answer.begin(),
                     answer.begin() +
                         static_cast<std::ptrdiff_t>(std::min(tokens.size(), answer.size())))) {
        return answer;
      }
    }
    return answers_.front();
  }

  std::vector<std::vector<TokenId>> answers_;
  double wrong_;
  std::mt19937 random_;
};

}  // namespace hearth::engine
