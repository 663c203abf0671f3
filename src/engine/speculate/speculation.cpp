#include "engine/speculate/speculation.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hearth::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Speculation::Speculation(const SpeculationOptions& options, std::unique_ptr<Drafter> drafter)
    : options_(options), drafter_(std::move(drafter)), depths_(options.max_depth) {
  options_.max_depth = drafter_ ? options.max_depth : 0;
}

SpeculationReport Speculation::report() const {
  auto report = report_;
  report.saved_seconds = depths_.saved_seconds();
  return report;
}

void Speculation::admit(Sequence& sequence) {
  if (drafter_) {
    drafter_->forget(sequence.seat);
    sequence.is_read_along = !options_.is_adaptive || depths_.may_read();
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
  const bool has_candidates = std::ranges::any_of(running, [](const auto* sequence) {
    return sequence->is_decoding() && sequence->is_read_along;
  });
  if (!has_candidates) {
    return {};
  }
  const std::int64_t depth = options_.is_adaptive ? depths_.choose(n_decoding) : options_.max_depth;
  tasks_.clear();
  for (auto* sequence : running) {
    // A step yields one token beyond the guesses that were right.
    const std::int64_t room = sequence->limit - static_cast<std::int64_t>(sequence->tokens.size());
    const std::int64_t n = std::min(depth, room - 1);
    if (sequence->is_decoding() && sequence->is_read_along && n > 0) {
      tasks_.push_back(task_of(*sequence, n));
    }
  }
  return tasks_.empty() ? Result<void>() : run_drafter();
}

Result<void> Speculation::run_drafter() {
  const auto start = Clock::now();
  HEARTH_ASSIGN(const auto n_late, drafter_->draft(tasks_));
  const double seconds = seconds_since(start);
  report_.draft_seconds += seconds;
  if (n_late == 0) {
    step_.draft_seconds = seconds;
  } else {  // most of it went into reading
    depths_.record_reading(seconds);
    is_typical_ = false;
  }
  return {};
}

Result<void> Speculation::follow(std::span<Sequence* const> running) {
  if (options_.max_depth == 0) {
    return {};
  }
  tasks_.clear();
  for (auto* sequence : running) {
    if (sequence->is_running() && sequence->is_read_along) {
      tasks_.push_back(task_of(*sequence, 0));
    }
  }
  const auto start = Clock::now();
  HEARTH_TRY(drafter_->follow(tasks_));
  const double seconds = seconds_since(start);
  report_.draft_seconds += seconds;
  depths_.record_reading(seconds);
  return {};
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
  } else {
    depths_.record_other(step_.draft_seconds + seconds);
  }
}

}  // namespace hearth::engine
