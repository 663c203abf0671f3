#include "engine/speculate/mtp_drafter.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/schedule/share_rows.h"

namespace hearth::engine {
namespace {

/// Hidden rows of an answer that may gather before the head reads them, so that it reads many at
/// a time while nobody wants guesses.
constexpr std::int64_t max_gathered = 64;
/// The head's own hidden rows: it loads one and stores the next.
constexpr std::int64_t n_own_rows = 2;

}  // namespace

std::int64_t mtp_stored_rows(std::int64_t max_sequences, std::int64_t max_rows) {
  return max_sequences * (max_rows + max_gathered + n_own_rows);
}

MtpDrafter::MtpDrafter(Runner& runner, std::int64_t max_sequences)
    : runner_(runner),
      rows_per_seat_(runner.options().max_rows + max_gathered),
      n_read_(static_cast<std::size_t>(max_sequences)) {
  HEARTH_ASSERT(runner.options().n_stored_rows ==
                mtp_stored_rows(max_sequences, runner.options().max_rows));
}

void MtpDrafter::forget(std::int32_t seat) {
  n_read_[static_cast<std::size_t>(seat)] = 0;
}

std::int32_t MtpDrafter::stored_row(std::int32_t seat, std::int64_t position) const {
  return static_cast<std::int32_t>(seat * (rows_per_seat_ + n_own_rows) +
                                   position % rows_per_seat_);
}

std::int32_t MtpDrafter::own_row(std::int32_t seat, std::int64_t n) const {
  return static_cast<std::int32_t>(seat * (rows_per_seat_ + n_own_rows) + rows_per_seat_ +
                                   n % n_own_rows);
}

Result<std::int64_t> MtpDrafter::draft(std::span<const DraftTask> tasks) {
  work_.clear();
  std::int64_t n_late = 0;
  for (const auto& task : tasks) {
    work_.push_back({.task = &task, .end = static_cast<std::int64_t>(task.tokens.size()) - 1});
    auto& n = n_read(work_.back());
    n = std::min(n, work_.back().end - 1);  // the last has to be run for its guess
    // One hidden row for each token of the last step is the usual.
    n_late += std::max<std::int64_t>(0, work_.back().end - n - 1 - task.depth);
  }
  HEARTH_TRY(read(true));
  while (true) {
    std::erase_if(work_, [](const Work& work) { return work.n_guessed >= work.task->depth; });
    if (work_.empty()) {
      return n_late;
    }
    step_block_.clear();
    for (auto& work : work_) {
      work.takes_guess = true;
      add_row(work, step_block_.add_sequence(work.task->block_table, 0),
              work.end + work.n_guessed - 1, work.task->drafts->back(),
              own_row(work.task->seat, work.n_guessed - 1), true);
    }
    HEARTH_TRY(run());
  }
}

Result<void> MtpDrafter::follow(std::span<const DraftTask> tasks) {
  work_.clear();
  for (const auto& task : tasks) {
    // The hidden row of the last token has no next token yet, unless one has been chosen.
    const auto n_tokens = static_cast<std::int64_t>(task.tokens.size());
    work_.push_back({.task = &task, .end = std::min(task.n_computed, n_tokens - 1)});
    if (work_.back().end - n_read(work_.back()) < max_gathered) {
      work_.pop_back();
    }
  }
  return read(false);
}

Result<void> MtpDrafter::read(bool with_guesses) {
  std::vector<std::int64_t> pending;
  while (true) {
    pending.clear();
    for (auto& work : work_) {
      pending.push_back(work.end - n_read(work));
    }
    if (std::all_of(pending.begin(), pending.end(), [](auto n) { return n == 0; })) {
      return {};
    }
    const auto rows = share_rows(pending, runner_.options().max_rows);
    step_block_.clear();
    for (std::size_t i = 0; i < work_.size(); ++i) {
      auto& work = work_[i];
      const std::int64_t begin = n_read(work);
      const std::int64_t end = begin + rows[i];
      work.takes_guess = with_guesses && end == work.end && rows[i] > 0;
      if (begin == end) {
        continue;
      }
      const auto index = step_block_.add_sequence(work.task->block_table, 0);
      for (std::int64_t position = begin; position < end; ++position) {
        add_row(work, index, position, work.task->tokens[static_cast<std::size_t>(position) + 1],
                stored_row(work.task->seat, position), work.takes_guess && position + 1 == end);
      }
      n_read(work) = end;
    }
    HEARTH_TRY(run());
  }
}

void MtpDrafter::add_row(const Work& work, std::int32_t sequence, std::int64_t position,
                         TokenId token, std::int32_t source, bool wants_logits) {
  step_block_.add_row(sequence,
                      {.token = token,
                       .position = position,
                       .wants_logits = wants_logits,
                       .row_source = source,
                       // Only the next guess loads it.
                       .row_target = wants_logits ? own_row(work.task->seat, work.n_guessed) : -1});
}

Result<void> MtpDrafter::run() {
  if (std::ranges::none_of(work_, &Work::takes_guess)) {
    return runner_.run_mtp_reading(step_block_.view());
  }
  HEARTH_ASSIGN(const auto largest, runner_.run_mtp_argmax(step_block_.view()));
  std::size_t row = 0;
  for (auto& work : work_) {
    if (work.takes_guess) {
      work.task->drafts->push_back(TokenId{static_cast<std::int32_t>(largest[row++].column())});
      ++work.n_guessed;
    }
  }
  return {};
}

}  // namespace hearth::engine
