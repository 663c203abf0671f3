#include "engine/speculate/model_drafter.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "engine/schedule/share_rows.h"
#include "engine/speculate/vocabulary_match.h"

namespace hearth::engine {

Result<std::unique_ptr<ModelDrafter>> ModelDrafter::create(const model::Model& model,
                                                           const model::Model& target,
                                                           backend::Backend& backend,
                                                           const ModelDrafterOptions& options) {
  HEARTH_TRY(check_same_vocabulary({target.name(), target.tokenizer()},
                                   {model.name(), model.tokenizer()}));
  if (options.context < 1 || options.max_sequences < 1 || options.max_depth < 1 ||
      options.max_rows < options.max_sequences) {
    return fail(ErrorCode::invalid_argument,
                "a draft model with context {}, {} sequences, {} guesses, {} rows per step: "
                "expected at least 1 each and a row for every sequence",
                options.context, options.max_sequences, options.max_depth, options.max_rows);
  }
  HEARTH_ASSIGN(
      auto runner,
      Runner::create(
          model, backend,
          {.kv_dtype = options.kv_dtype,
           .n_kv_blocks = options.max_sequences * ceil_div(options.context, graph::kv_block_tokens),
           .n_state_slots = options.max_sequences * states_per_seat(options),
           .max_rows = std::min(options.max_rows, options.context * options.max_sequences),
           .max_logit_rows = options.max_sequences}));
  return std::unique_ptr<ModelDrafter>(new ModelDrafter(model, options, std::move(runner)));
}

ModelDrafter::ModelDrafter(const model::Model& model, const ModelDrafterOptions& options,
                           std::unique_ptr<Runner> runner)
    : model_(model),
      options_(options),
      runner_(std::move(runner)),
      is_recurrent_(!model.state_layers().empty()) {
  const auto n_blocks = static_cast<std::size_t>(ceil_div(options.context, graph::kv_block_tokens));
  const auto n_states = static_cast<std::size_t>(states_per_seat(options));
  std::int32_t next_block = 0;
  std::int32_t next_state = 0;
  seats_.resize(static_cast<std::size_t>(options.max_sequences));
  for (auto& seat : seats_) {
    seat.block_table.resize(n_blocks);
    std::iota(seat.block_table.begin(), seat.block_table.end(), next_block);
    next_block += static_cast<std::int32_t>(n_blocks);
    seat.state_slots.resize(n_states);
    std::iota(seat.state_slots.begin(), seat.state_slots.end(), next_state);
    next_state += static_cast<std::int32_t>(n_states);
  }
}

std::string ModelDrafter::description() const {
  return "draft model " + model_.name();
}

void ModelDrafter::forget(std::int32_t seat) {
  auto& gone = seats_[static_cast<std::size_t>(seat)];
  gone.read.clear();
  gone.n_reached = 0;
}

Result<std::int64_t> ModelDrafter::draft(std::span<const DraftTask> tasks) {
  work_.clear();
  std::int64_t n_late = 0;
  for (const auto& task : tasks) {
    const auto length = static_cast<std::int64_t>(task.tokens.size());
    const std::int64_t depth = std::min(task.depth, options_.context - length);
    if (depth > 0) {
      auto& seat = seats_[static_cast<std::size_t>(task.seat)];
      rewind(seat, task.tokens);
      const std::int64_t n_unread = length - static_cast<std::int64_t>(seat.read.size());
      n_late += std::max<std::int64_t>(0, n_unread - options_.max_depth - 1);
      work_.push_back({&seat, task.tokens, task.drafts, depth});
    }
  }
  HEARTH_TRY(read_unread());
  for (std::int64_t n = 1; n < options_.max_depth; ++n) {
    std::erase_if(work_, [n](const Work& work) { return work.depth <= n; });
    if (work_.empty()) {
      break;
    }
    HEARTH_TRY(read_guesses());
  }
  return n_late;
}

void ModelDrafter::rewind(Seat& seat, std::span<const TokenId> tokens) const {
  const auto limit = std::min(seat.read.size(), tokens.size() - 1);
  std::size_t same = 0;
  while (same < limit && seat.read[same] == tokens[same]) {
    ++same;
  }
  // Only the last states are kept; to go back further, one has to read anew.
  if (is_recurrent_ && same + seat.state_slots.size() <= seat.n_reached) {
    same = 0;
    seat.n_reached = 0;
  }
  seat.read.resize(same);
}

Result<void> ModelDrafter::read_unread() {
  std::vector<std::int64_t> pending;
  while (true) {
    pending.clear();
    for (const auto& work : work_) {
      pending.push_back(static_cast<std::int64_t>(work.tokens.size() - work.seat->read.size()));
    }
    if (std::all_of(pending.begin(), pending.end(), [](auto n) { return n == 0; })) {
      return {};
    }
    const auto rows = share_rows(pending, runner_->options().max_rows);
    step_block_.clear();
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const auto begin = work_[i].seat->read.size();
      add_rows(work_[i], work_[i].tokens.subspan(begin, static_cast<std::size_t>(rows[i])),
               rows[i] == pending[i]);
    }
    HEARTH_TRY(run());
  }
}

Result<void> ModelDrafter::read_guesses() {
  step_block_.clear();
  for (auto& work : work_) {
    add_rows(work, {&work.drafts->back(), 1}, true);
  }
  return run();
}

void ModelDrafter::add_rows(Work& work, std::span<const TokenId> tokens, bool wants_guess) {
  Seat& seat = *work.seat;
  work.takes_guess = wants_guess && !tokens.empty();
  if (tokens.empty()) {
    return;
  }
  const auto index = step_block_.add_sequence(seat.block_table, seat.state_after(seat.read.size()));
  const std::size_t end = seat.read.size() + tokens.size();
  for (const auto token : tokens) {
    const auto position = static_cast<std::int64_t>(seat.read.size());
    seat.read.push_back(token);
    // States that nobody will go back to share the slot of the last of them.
    const std::size_t n_kept = seat.state_slots.size();
    const std::size_t first_kept = end - std::min(end, n_kept - 1);
    step_block_.add_row(index,
                        {.token = token,
                         .position = position,
                         .wants_logits = wants_guess && seat.read.size() == end,
                         .state_target = seat.state_after(std::max(seat.read.size(), first_kept))});
  }
  seat.n_reached = std::max(seat.n_reached, end);
}

Result<void> ModelDrafter::run() {
  HEARTH_ASSIGN(const auto largest, runner_->run_argmax(step_block_.view()));
  std::size_t row = 0;
  for (auto& work : work_) {
    if (work.takes_guess) {
      work.drafts->push_back(TokenId{static_cast<std::int32_t>(largest[row++].column())});
    }
  }
  return {};
}

}  // namespace hearth::engine
