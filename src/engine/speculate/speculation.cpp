#include "engine/speculate/speculation.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hearth::engine {

Speculation::Speculation(const SpeculationOptions& options, std::unique_ptr<Drafter> drafter)
    : options_(options), drafter_(std::move(drafter)), depths_(options.max_depth) {
  options_.max_depth = drafter_ ? options.max_depth : 0;
}

SpeculationReport Speculation::report() const {
  auto report = report_;
  report.saved_seconds = depths_.saved_seconds();
  return report;
}

void Speculation::admit(const Sequence& sequence) {
  if (drafter_) {
    drafter_->forget(sequence.seat);
  }
}

Result<void> Speculation::draft(std::span<Sequence* const> running) {
  if (options_.max_depth == 0) {
    return {};
  }
  const auto n_decoding = std::count_if(
      running.begin(), running.end(), [](const auto* sequence) { return sequence->is_decoding(); });
  step_ = {.n_sequences = n_decoding};
  is_typical_ = n_decoding == static_cast<std::int64_t>(running.size());
  if (n_decoding == 0) {
    return {};
  }
  const std::int64_t depth = options_.is_adaptive ? depths_.choose(n_decoding) : options_.max_depth;
  tasks_.clear();
  for (auto* sequence : running) {
    // A step yields one token beyond the guesses that were right.
    const std::int64_t room = sequence->limit - static_cast<std::int64_t>(sequence->tokens.size());
    if (const std::int64_t n = std::min(depth, room - 1); sequence->is_decoding() && n > 0) {
      tasks_.push_back(task_of(*sequence, n));
    }
  }
  if (tasks_.empty()) {
    return {};
  }
  const auto start = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(const auto n_late, drafter_->draft(tasks_));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  step_.draft_seconds = time.count();
  report_.draft_seconds += time.count();
  is_typical_ = is_typical_ && n_late == 0;
  return {};
}

Result<void> Speculation::follow(std::span<Sequence* const> running) {
  if (options_.max_depth == 0) {
    return {};
  }
  tasks_.clear();
  for (auto* sequence : running) {
    if (sequence->is_running()) {
      tasks_.push_back(task_of(*sequence, 0));
    }
  }
  return drafter_->follow(tasks_);
}

DraftTask Speculation::task_of(Sequence& sequence, std::int64_t depth) {
  return {.seat = sequence.seat,
          .tokens = sequence.tokens,
          .n_computed = static_cast<std::int64_t>(sequence.n_computed),
          .block_table = sequence.block_table,
          .depth = depth,
          .drafts = &sequence.drafts};
}

void Speculation::record_guesses(std::int64_t checked, std::int64_t accepted) {
  step_.n_drafted += checked;
  step_.n_tokens += accepted + 1;
  report_.n_drafted += checked;
  report_.n_accepted += accepted;
  depths_.record_guesses(checked, accepted);
}

void Speculation::record_step(double seconds) {
  if (options_.max_depth == 0) {
    return;
  }
  report_.n_steps += step_.n_drafted > 0 ? 1 : 0;
  step_.step_seconds = seconds;
  if (is_typical_) {
    depths_.record(step_);
  }
}

}  // namespace hearth::engine
