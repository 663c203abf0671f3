#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/sequence.h"
#include "engine/speculate/depth_chooser.h"
#include "engine/speculate/drafter.h"

namespace hearth::engine {

struct SpeculationOptions {
  std::int64_t max_depth = 0;  // guesses per step and sequence
  bool is_adaptive = true;     // as many as gain time; otherwise always the most
};

/// What guessing has done so far.
struct SpeculationReport {
  std::int64_t n_steps = 0;     // that checked guesses
  std::int64_t n_drafted = 0;   // guesses
  std::int64_t n_accepted = 0;  // right ones
  double draft_seconds = 0;     // of the drafter, what it only read included
  double saved_seconds = 0;     // against plain steps, as measured; negative if it was in vain
};

/// The engine's side of guessing: has guesses made for sequences that decode, and learns from what
/// became of them. Without a drafter it does nothing. One thread at a time.
class Speculation {
 public:
  Speculation(const SpeculationOptions& options, std::unique_ptr<Drafter> drafter);

  /// nullptr where nothing is guessed.
  [[nodiscard]] const Drafter* drafter() const { return drafter_.get(); }
  [[nodiscard]] std::int64_t max_depth() const { return options_.max_depth; }
  [[nodiscard]] SpeculationReport report() const;

  /// A sequence has taken its seat; decides whether guesses will be made for it.
  void admit(Sequence& sequence);

  /// Fills the drafts of those that decode, with no more than an answer may still take.
  /// Errors: the device failed.
  Result<void> draft(std::span<Sequence* const> running);
  /// The step has checked `checked` guesses of a sequence, of which the first `accepted` were
  /// right.
  void record_guesses(std::int64_t checked, std::int64_t accepted);
  /// The step of all those sequences is over.
  void record_step(double seconds);
  /// Lets the drafter read what the step has computed. Errors: the device failed.
  Result<void> follow(std::span<Sequence* const> running);

  /// Where the step stores the hidden row of a position.
  [[nodiscard]] std::int32_t stored_row(const Sequence& sequence, std::int64_t position) const {
    return drafter_ ? drafter_->stored_row(sequence.seat, position) : 0;
  }

 private:
  static DraftTask task_of(Sequence& sequence, std::int64_t depth);
  /// Guesses for the tasks, and how long they took.
  Result<void> run_drafter();

  SpeculationOptions options_;
  std::unique_ptr<Drafter> drafter_;
  DepthChooser depths_;
  SpeculationReport report_;
  std::vector<DraftTask> tasks_;
  DecodeStep step_;         // under way
  bool is_typical_ = true;  // it only decodes, and its guesses took the usual time
};

}  // namespace hearth::engine
