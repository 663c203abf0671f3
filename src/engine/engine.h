#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "engine/kv/block_pool.h"
#include "engine/runner.h"
#include "engine/sequence.h"
#include "engine/speculate/speculation.h"
#include "engine/state/slot_pool.h"
#include "engine/step_block.h"
#include "model/model.h"
#include "sampling/sampler.h"

namespace hearth::engine {

class Engine;

/// The answer to one request, token by token. Move-only; destroying it cancels the sequence and
/// frees its blocks, so an early return, an error and a reader that left all clean up the same way.
/// Must not outlive its engine.
class TokenStream {
 public:
  TokenStream(TokenStream&& other) noexcept;
  TokenStream& operator=(TokenStream&& other) noexcept;
  ~TokenStream();

  /// The next token; runs engine steps, which serve all sequences, until there is one. nullopt at
  /// the end. End-of-generation tokens are not delivered. Errors: internal (this request's
  /// computation went wrong).
  Result<std::optional<TokenId>> next();

  /// Why it ended; nullopt before.
  [[nodiscard]] std::optional<FinishReason> finish_reason() const;

 private:
  friend class Engine;
  TokenStream(Engine& engine, SequenceId id) : engine_(&engine), id_(id) {}

  Engine* engine_;
  SequenceId id_;
};

struct EngineOptions {
  std::int64_t context = 0;        // tokens per sequence; 0: the model's trained context
  std::int64_t max_sequences = 1;  // running at the same time; more wait
  // Rows of one step: prompts are read in chunks of at most this. 0: as the backend likes.
  std::int64_t max_rows = 0;
  DType kv_dtype = DType::f16;
  SpeculationOptions speculation;  // for a drafter or the MTP head, if there is one
};

/// Serves requests on one model: admits them against the KV cache, shares the rows of each step
/// among them, samples. The tokens of a request are a function of the request alone. One thread at
/// a time.
class Engine {
 public:
  /// `model` and `backend` must outlive it. With a drafter (the model's MTP head, if it has
  /// one and no other is given) answers take less time and have the same tokens. Errors:
  /// invalid_argument for options out of range; those of Runner; with out_of_memory the message
  /// says what would fit.
  static Result<std::unique_ptr<Engine>> create(const model::Model& model,
                                                backend::Backend& backend,
                                                const EngineOptions& options,
                                                std::unique_ptr<Drafter> drafter = nullptr);

  /// Errors: invalid_argument for an empty prompt, a token outside the vocabulary, a prompt that
  /// leaves no room for an answer in the context (the message gives both lengths), or sampling
  /// parameters out of range.
  Result<TokenStream> submit(Request request);

  /// Runs one step for everyone that can run. False when there was nothing to do. The device may
  /// then be at the next one already.
  /// Errors: the device failed; every running sequence has then ended with that error.
  Result<bool> step();

  [[nodiscard]] std::int64_t context() const { return options_.context; }
  [[nodiscard]] std::int64_t max_sequences() const { return options_.max_sequences; }
  [[nodiscard]] std::int64_t n_free_blocks() const { return blocks_.n_free(); }
  [[nodiscard]] std::int64_t n_free_state_slots() const { return state_slots_.n_free(); }
  [[nodiscard]] Runner& runner() { return *runner_; }
  [[nodiscard]] const Speculation& speculation() const { return speculation_; }

 private:
  friend class TokenStream;

  Engine(const model::Model& model, const EngineOptions& options, std::unique_ptr<Runner> runner,
         std::unique_ptr<Drafter> drafter);

  [[nodiscard]] Result<void> check(const Request& request) const;
  void admit_waiting();
  /// Tokens of prompt and answer together, at most.
  [[nodiscard]] std::int64_t longest(const Sequence& sequence) const;
  Result<void> run(const std::vector<Sequence*>& running);
  Result<void> run_step(const std::vector<Sequence*>& running);
  /// Puts the next n_rows tokens of the sequence, the guesses behind them included, into the step.
  void add_rows(const Sequence& sequence, std::int64_t n_rows);
  /// What a step has computed for its logit rows: one of these.
  struct LogitRows {
    std::span<const float> logits;                // [rows, vocab]
    std::span<const graph::ColumnValue> largest;  // [rows]
    std::span<const graph::ColumnValue> top;      // [rows, n_top() of the runner]
  };
  /// Computes as little as all of them choose from.
  Result<LogitRows> run_step_block(std::span<Sequence* const> running);

  /// Where the next step of these can be started ahead: all are greedy and decode, and nothing is
  /// guessed. nullptr otherwise, and where the device has nothing of that.
  Result<backend::StepQueue*> queue_for(std::span<Sequence* const> running);
  /// Starts it, with the tokens that are known or those that the step under way chooses.
  Result<void> start_step(backend::StepQueue& queue, std::span<Sequence* const> running);
  /// Whether these are the sequences of the step under way, and none ends with its token for sure.
  [[nodiscard]] bool go_on(std::span<Sequence* const> running) const;
  /// Takes what the first step under way has computed; of sequences that have ended, nothing.
  Result<void> take_started_step();
  void abandon_started_steps();
  /// Takes what the step has computed for those rows. The `first` of `computed` is that of the
  /// sequence's last token, if it was among the rows; its guesses follow. Returns how many logit
  /// rows those were.
  std::size_t take_rows(Sequence& sequence, std::int64_t n_rows, const LogitRows& computed,
                        std::size_t first);
  void choose_token(Sequence& sequence, const LogitRows& computed, std::size_t row);
  Result<sampling::Choice> choice_for(const Sequence& sequence, const LogitRows& computed,
                                      std::size_t row);
  /// From the largest logits of a row.
  Result<sampling::Choice> choice_from(const Sequence& sequence,
                                       std::span<const graph::ColumnValue> top);
  void finish(Sequence& sequence);
  void cancel(SequenceId id);
  [[nodiscard]] Sequence* find(SequenceId id);

  const model::Model& model_;
  EngineOptions options_;
  std::unique_ptr<Runner> runner_;
  Speculation speculation_;
  BlockPool blocks_;
  SlotPool seats_;
  SlotPool state_slots_;
  sampling::Sampler sampler_;
  std::vector<sampling::Candidate> candidates_;  // of the row from which a token is chosen
  StepBlock step_block_;
  backend::StepQueue* queue_ = nullptr;               // of the steps under way
  std::deque<std::vector<SequenceId>> started_;       // for each, whose rows it has
  std::vector<std::unique_ptr<Sequence>> sequences_;  // in order of arrival
  std::int64_t next_id_ = 0;
};

}  // namespace hearth::engine
