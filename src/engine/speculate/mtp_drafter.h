#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/runner.h"
#include "engine/speculate/drafter.h"
#include "engine/step_block.h"

namespace hearth::engine {

/// Places in the row store that a head needs for sequences of which a step reads up to `max_rows`
/// tokens.
std::int64_t mtp_stored_rows(std::int64_t max_sequences, std::int64_t max_rows);

/// Drafts with the model's own MTP head. It reads the hidden rows that the trunk stores, a prompt's
/// at once and an answer's when it drafts or when a few dozen have gathered, and goes on from its
/// own hidden rows for guesses behind the first.
class MtpDrafter final : public Drafter {
 public:
  /// `runner` is that of the trunk, made for a head with mtp_stored_rows(); it must outlive this.
  MtpDrafter(Runner& runner, std::int64_t max_sequences);

  [[nodiscard]] std::string description() const override { return "the model's MTP head"; }
  [[nodiscard]] backend::MemoryUse memory() const override { return {}; }
  void forget(std::int32_t seat) override;
  Result<std::int64_t> draft(std::span<const DraftTask> tasks) override;
  [[nodiscard]] std::int32_t stored_row(std::int32_t seat, std::int64_t position) const override;
  Result<void> follow(std::span<const DraftTask> tasks) override;

 private:
  /// A task under way.
  struct Work {
    const DraftTask* task;
    std::int64_t end;            // the position behind the last hidden row to read
    std::int64_t n_guessed = 0;  // behind that
    bool takes_guess = false;    // from the step that is being put together
  };

  /// Reads hidden rows up to the end of each work; with guesses, takes the first.
  Result<void> read(bool with_guesses);
  void add_row(const Work& work, std::int32_t sequence, std::int64_t position, TokenId token,
               std::int32_t source, bool wants_logits);
  Result<void> run();
  /// Where the head's own hidden row behind its n-th guess goes.
  [[nodiscard]] std::int32_t own_row(std::int32_t seat, std::int64_t n) const;
  [[nodiscard]] std::int64_t& n_read(const Work& work) {
    return n_read_[static_cast<std::size_t>(work.task->seat)];
  }

  Runner& runner_;
  std::int64_t rows_per_seat_;        // of the trunk, by position modulo this
  std::vector<std::int64_t> n_read_;  // by seat: hidden rows in the head's KV cache
  std::vector<Work> work_;
  StepBlock step_block_;
};

}  // namespace hearth::engine
