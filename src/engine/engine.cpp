#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "engine/schedule/share_rows.h"
#include "engine/speculate/mtp_drafter.h"
#include "engine/what_fits.h"

namespace hearth::engine {
namespace {

bool takes_largest(const Sequence* sequence) {
  return sampling::takes_largest(sequence->request.sampling);
}

/// Whether its tokens up to the one behind the last guess are among the `n_top` largest logits.
bool takes_top(const Sequence* sequence, std::int64_t n_top) {
  const std::size_t n_tokens = sequence->tokens.size() + sequence->drafts.size();
  const auto needed =
      sampling::largest_needed(sequence->request.sampling, static_cast<std::int64_t>(n_tokens));
  return needed && *needed <= n_top;
}

}  // namespace

TokenStream::TokenStream(TokenStream&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), id_(other.id_) {}

TokenStream& TokenStream::operator=(TokenStream&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(id_, other.id_);
  return *this;
}

TokenStream::~TokenStream() {
  if (engine_ != nullptr) {
    engine_->cancel(id_);
  }
}

Result<std::optional<TokenId>> TokenStream::next() {
  while (true) {
    Sequence& sequence = *engine_->find(id_);
    if (sequence.n_delivered < sequence.n_output()) {
      return sequence.tokens[sequence.n_prompt + sequence.n_delivered++];
    }
    if (sequence.error) {
      return Failure(*sequence.error);
    }
    if (sequence.finished) {
      return std::nullopt;
    }
    HEARTH_TRY(engine_->step());
  }
}

std::optional<FinishReason> TokenStream::finish_reason() const {
  return engine_->find(id_)->finished;
}

Result<std::unique_ptr<Engine>> Engine::create(const model::Model& model, backend::Backend& backend,
                                               const EngineOptions& wanted,
                                               std::unique_ptr<Drafter> drafter) {
  EngineOptions options = wanted;
  options.context = options.context == 0 ? model.params().context : options.context;
  options.max_rows = options.max_rows == 0 ? std::max(backend.prompt_rows(), options.max_sequences)
                                           : options.max_rows;
  const bool uses_mtp = !drafter && options.speculation.max_depth > 0 && model.mtp() != nullptr;
  const std::int64_t max_depth = drafter || uses_mtp ? options.speculation.max_depth : 0;
  if (options.context < 1 || options.max_sequences < 1 || max_depth < 0 ||
      options.max_rows < options.max_sequences) {
    return fail(ErrorCode::invalid_argument,
                "context {}, {} sequences, {} rows per step, {} guesses: expected at least 1, 1, a "
                "row for every sequence, 0",
                options.context, options.max_sequences, options.max_rows, max_depth);
  }
  const std::int64_t max_rows = std::min(options.max_rows, options.context * options.max_sequences);
  const std::int64_t max_decode_rows = options.max_sequences * (1 + max_depth);
  const RunnerOptions runner_options{
      .kv_dtype = options.kv_dtype,
      .n_kv_blocks = options.max_sequences * ceil_div(options.context, graph::kv_block_tokens),
      .n_state_slots = max_decode_rows,
      .max_rows = max_rows,
      .max_logit_rows = std::min(max_decode_rows, max_rows),
      .n_stored_rows = uses_mtp ? mtp_stored_rows(options.max_sequences, max_rows) : 0};
  auto runner = Runner::create(model, backend, runner_options);
  if (!runner) {
    const Error& error = runner.error();
    return error.code != ErrorCode::out_of_memory
               ? Failure(error)
               : fail(error.code, "{}; {}", error.message,
                      what_fits(model, backend, runner_options, options.max_sequences));
  }
  if (uses_mtp) {
    drafter = std::make_unique<MtpDrafter>(**runner, options.max_sequences);
  }
  return std::unique_ptr<Engine>(
      new Engine(model, options, std::move(*runner), std::move(drafter)));
}

Engine::Engine(const model::Model& model, const EngineOptions& options,
               std::unique_ptr<Runner> runner, std::unique_ptr<Drafter> drafter)
    : model_(model),
      options_(options),
      runner_(std::move(runner)),
      speculation_(options.speculation, std::move(drafter)),
      blocks_(runner_->options().n_kv_blocks),
      seats_(options.max_sequences),
      state_slots_(runner_->options().n_state_slots),
      sampler_(static_cast<std::size_t>(model.n_usable_tokens())) {}

Result<TokenStream> Engine::submit(Request request) {
  HEARTH_TRY(check(request));
  auto sequence = std::make_unique<Sequence>();
  sequence->id = static_cast<SequenceId>(next_id_++);
  sequence->tokens = request.prompt;
  sequence->n_prompt = request.prompt.size();
  sequence->request = std::move(request);
  sequences_.push_back(std::move(sequence));
  return TokenStream(*this, sequences_.back()->id);
}

Result<void> Engine::check(const Request& request) const {
  const auto length = static_cast<std::int64_t>(request.prompt.size());
  if (length == 0) {
    return fail(ErrorCode::invalid_argument, "the prompt is empty, expected at least one token");
  }
  if (length >= options_.context) {
    return fail(ErrorCode::invalid_argument,
                "the prompt has {} tokens, but the context holds {} including the answer", length,
                options_.context);
  }
  for (const auto token : request.prompt) {
    const auto id = static_cast<std::int64_t>(token);
    if (id < 0 || id >= model_.n_usable_tokens()) {
      return fail(ErrorCode::invalid_argument, "token {} is outside the vocabulary of {}", id,
                  model_.n_usable_tokens());
    }
  }
  return sampling::validate(request.sampling, model_.n_usable_tokens());
}

Result<bool> Engine::step() {
  admit_waiting();
  std::vector<Sequence*> running;
  for (const auto& sequence : sequences_) {
    if (sequence->is_running()) {
      running.push_back(sequence.get());
    }
  }
  if (running.empty()) {
    abandon_started_steps();
    return false;
  }
  if (auto done = run(running); !done) {
    abandon_started_steps();
    for (auto* sequence : running) {
      sequence->error = done.error();
      finish(*sequence);
    }
    return Failure(done.error());
  }
  return true;
}

void Engine::admit_waiting() {
  auto n_running = std::count_if(sequences_.begin(), sequences_.end(),
                                 [](const auto& sequence) { return sequence->is_running(); });
  for (auto& sequence : sequences_) {
    if (!sequence->is_waiting()) {
      continue;
    }
    // First come, first served. The blocks for the longest possible answer are taken at once, so
    // that an admitted sequence never runs out.
    sequence->limit = longest(*sequence);
    if (n_running == options_.max_sequences ||
        !blocks_.allocate(ceil_div(sequence->limit, graph::kv_block_tokens),
                          sequence->block_table)) {
      return;
    }
    // Of these there are enough for as many sequences as may run.
    sequence->seat = seats_.allocate();
    sequence->state_slot = state_slots_.allocate();
    for (std::int64_t i = 0; i < speculation_.max_depth(); ++i) {
      sequence->spare_slots.push_back(state_slots_.allocate());
    }
    speculation_.admit(*sequence);
    ++n_running;
  }
}

std::int64_t Engine::longest(const Sequence& sequence) const {
  const auto n_prompt = static_cast<std::int64_t>(sequence.n_prompt);
  const std::int64_t room = options_.context - n_prompt;
  const std::int64_t wanted = sequence.request.max_tokens;
  return n_prompt + (wanted < 0 ? room : std::min(wanted, room));
}

Result<void> Engine::run(const std::vector<Sequence*>& running) {
  HEARTH_ASSIGN(auto* queue, queue_for(running));
  if (started_.empty()) {
    if (queue == nullptr) {
      return run_step(running);
    }
    HEARTH_TRY(start_step(*queue, running));
  }
  // While the host takes these tokens, the device chooses the next.
  if (queue != nullptr && go_on(running)) {
    HEARTH_TRY(start_step(*queue, running));
  }
  return take_started_step();
}

Result<void> Engine::run_step(const std::vector<Sequence*>& running) {
  HEARTH_TRY(speculation_.draft(running));
  std::vector<std::int64_t> pending;
  pending.reserve(running.size());
  for (const auto* sequence : running) {
    pending.push_back(sequence->n_pending() + static_cast<std::int64_t>(sequence->drafts.size()));
  }
  const auto rows = share_rows(pending, runner_->options().max_rows);
  step_block_.clear();
  for (std::size_t i = 0; i < running.size(); ++i) {
    add_rows(*running[i], rows[i]);
  }
  const auto start = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(const auto computed, run_step_block(running));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::size_t n_taken = 0;
  for (std::size_t i = 0; i < running.size(); ++i) {
    n_taken += take_rows(*running[i], rows[i], computed, n_taken);
  }
  speculation_.record_step(time.count());
  return speculation_.follow(running);
}

Result<Engine::LogitRows> Engine::run_step_block(std::span<Sequence* const> running) {
  LogitRows computed;
  if (std::ranges::all_of(running, takes_largest)) {
    HEARTH_ASSIGN(computed.largest, runner_->run_argmax(step_block_.view()));
  } else if (std::ranges::all_of(running, [this](const Sequence* sequence) {
               return takes_top(sequence, runner_->n_top());
             })) {
    HEARTH_ASSIGN(computed.top, runner_->run_top_k(step_block_.view()));
  } else {
    HEARTH_ASSIGN(computed.logits, runner_->run(step_block_.view()));
  }
  return computed;
}

Result<backend::StepQueue*> Engine::queue_for(std::span<Sequence* const> running) {
  const auto is_plain = [](const Sequence* sequence) {
    return takes_largest(sequence) && sequence->is_decoding();
  };
  if (speculation_.max_depth() > 0 || !std::ranges::all_of(running, is_plain)) {
    return nullptr;
  }
  return runner_->argmax_queue(std::ssize(running), std::ssize(running));
}

Result<void> Engine::start_step(backend::StepQueue& queue, std::span<Sequence* const> running) {
  const std::size_t n_before = started_.size();  // steps whose tokens are not known
  std::vector<SequenceId> ids;
  step_block_.clear();
  for (const auto* sequence : running) {
    const auto index = step_block_.add_sequence(sequence->block_table, sequence->state_slot);
    step_block_.add_row(index,
                        {.token = sequence->tokens.back(),
                         .token_source = n_before == 0 ? -1 : index,
                         .position = static_cast<std::int64_t>(sequence->n_computed + n_before),
                         .wants_logits = true,
                         .state_target = sequence->state_slot});
    ids.push_back(sequence->id);
  }
  HEARTH_TRY(queue.start(step_block_.view()));
  queue_ = &queue;
  started_.push_back(std::move(ids));
  return {};
}

bool Engine::go_on(std::span<Sequence* const> running) const {
  return std::ranges::equal(running, started_.front(), {}, &Sequence::id) &&
         std::ranges::all_of(running, [](const Sequence* sequence) {
           return std::ssize(sequence->tokens) + 1 < sequence->limit;
         });
}

Result<void> Engine::take_started_step() {
  const auto ids = std::move(started_.front());
  started_.pop_front();
  HEARTH_ASSIGN(const auto result, queue_->finish());
  const LogitRows computed{.largest = graph::column_values(result)};
  std::size_t row = 0;  // both are in order of arrival
  for (const auto& sequence : sequences_) {
    while (row < ids.size() && ids[row] < sequence->id) {
      ++row;
    }
    if (row < ids.size() && ids[row] == sequence->id && sequence->is_running()) {
      ++sequence->n_computed;
      choose_token(*sequence, computed, row);
    }
  }
  return {};
}

void Engine::abandon_started_steps() {
  for (; !started_.empty(); started_.pop_front()) {
    (void)queue_->finish();  // nobody waits for what it says
  }
}

void Engine::add_rows(const Sequence& sequence, std::int64_t n_rows) {
  const auto index = step_block_.add_sequence(sequence.block_table, sequence.state_slot);
  const std::size_t n_tokens = sequence.tokens.size();
  const std::size_t end = sequence.n_computed + static_cast<std::size_t>(n_rows);
  for (std::size_t position = sequence.n_computed; position < end; ++position) {
    const bool is_guess = position >= n_tokens;
    const auto at = static_cast<std::int64_t>(position);
    step_block_.add_row(
        index,
        {.token = is_guess ? sequence.drafts[position - n_tokens] : sequence.tokens[position],
         .position = at,
         .wants_logits = position + 1 >= n_tokens,
         .state_target = is_guess ? sequence.spare_slots[position - n_tokens] : sequence.state_slot,
         .row_target = speculation_.stored_row(sequence, at)});
  }
}

std::size_t Engine::take_rows(Sequence& sequence, std::int64_t n_rows, const LogitRows& computed,
                              std::size_t first) {
  const std::int64_t n_tokens = std::min(n_rows, sequence.n_pending());
  sequence.n_computed += static_cast<std::size_t>(n_tokens);
  if (sequence.n_pending() > 0) {
    return 0;
  }
  const auto drafts = std::exchange(sequence.drafts, {});
  const auto n_checked = static_cast<std::size_t>(n_rows - n_tokens);
  choose_token(sequence, computed, first);
  std::size_t n_accepted = 0;
  while (n_accepted < n_checked && sequence.is_running() &&
         sequence.tokens.back() == drafts[n_accepted]) {
    // The guess is the token that was chosen, so its row stands.
    std::swap(sequence.state_slot, sequence.spare_slots[n_accepted]);
    ++sequence.n_computed;
    ++n_accepted;
    choose_token(sequence, computed, first + n_accepted);
  }
  speculation_.record_guesses(static_cast<std::int64_t>(n_checked),
                              static_cast<std::int64_t>(n_accepted));
  return 1 + n_checked;
}

Result<sampling::Choice> Engine::choice_for(const Sequence& sequence, const LogitRows& computed,
                                            std::size_t row) {
  const auto position = static_cast<std::int64_t>(sequence.tokens.size());
  if (!computed.largest.empty()) {
    const graph::ColumnValue& largest = computed.largest[row];
    return sampling::choose_largest({largest.value, largest.column()}, position);
  }
  if (!computed.top.empty()) {
    const auto n_top = static_cast<std::size_t>(runner_->n_top());
    return choice_from(sequence, computed.top.subspan(row * n_top, n_top));
  }
  const auto vocab = static_cast<std::size_t>(model_.params().vocab);
  const auto n_usable = static_cast<std::size_t>(model_.n_usable_tokens());
  return sampler_.sample(sequence.request.sampling, computed.logits.subspan(row * vocab, n_usable),
                         sequence.history(), position);
}

Result<sampling::Choice> Engine::choice_from(const Sequence& sequence,
                                             std::span<const graph::ColumnValue> top) {
  candidates_.clear();
  for (const graph::ColumnValue& each : top) {
    candidates_.push_back({TokenId{static_cast<std::int32_t>(each.column())}, each.value});
  }
  return sampler_.sample_largest(sequence.request.sampling, candidates_, sequence.history(),
                                 static_cast<std::int64_t>(sequence.tokens.size()));
}

void Engine::choose_token(Sequence& sequence, const LogitRows& computed, std::size_t row) {
  const auto& request = sequence.request;
  if (request.max_tokens == 0) {
    sequence.finished = FinishReason::max_tokens;
    return finish(sequence);
  }
  const auto choice = choice_for(sequence, computed, row);
  if (!choice) {
    sequence.error = choice.error();
    return finish(sequence);
  }
  if (!request.ignore_end_of_generation && model_.tokenizer().is_end_of_generation(choice->token)) {
    sequence.finished = FinishReason::end_of_generation;
    return finish(sequence);
  }
  sequence.tokens.push_back(choice->token);
  if (static_cast<std::int64_t>(sequence.n_output()) == request.max_tokens) {
    sequence.finished = FinishReason::max_tokens;
  } else if (static_cast<std::int64_t>(sequence.tokens.size()) == options_.context) {
    sequence.finished = FinishReason::context_full;
  }
  if (sequence.finished) {
    finish(sequence);
  }
}

void Engine::finish(Sequence& sequence) {
  blocks_.free(sequence.block_table);
  seats_.free(sequence.seat);
  state_slots_.free(sequence.state_slot);
  for (auto& slot : sequence.spare_slots) {
    state_slots_.free(slot);
  }
  sequence.spare_slots.clear();
}

void Engine::cancel(SequenceId id) {
  finish(*find(id));
  std::erase_if(sequences_, [id](const auto& sequence) { return sequence->id == id; });
  if (std::ranges::none_of(sequences_, [](const auto& each) { return each->is_running(); })) {
    abandon_started_steps();
  }
}

Sequence* Engine::find(SequenceId id) {
  const auto found = std::find_if(sequences_.begin(), sequences_.end(),
                                  [id](const auto& sequence) { return sequence->id == id; });
  return found == sequences_.end() ? nullptr : found->get();
}

}  // namespace hearth::engine
