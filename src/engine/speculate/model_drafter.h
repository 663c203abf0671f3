#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/runner.h"
#include "engine/speculate/drafter.h"
#include "engine/step_block.h"
#include "model/model.h"

namespace hearth::engine {

struct ModelDrafterOptions {
  std::int64_t context = 0;        // tokens per sequence
  std::int64_t max_sequences = 1;  // seats
  std::int64_t max_depth = 1;
  std::int64_t max_rows = 512;  // rows of one step: prompts are read in chunks of at most this
  DType kv_dtype = DType::f16;
};

/// Drafts with a second, smaller model: its most likely next token, time after time.
class ModelDrafter final : public Drafter {
 public:
  /// `model` drafts for `target`; both and `backend` must outlive it.
  /// Errors: invalid_argument for another vocabulary or a context beyond what options allow; those
  /// of Runner.
  static Result<std::unique_ptr<ModelDrafter>> create(const model::Model& model,
                                                      const model::Model& target,
                                                      backend::Backend& backend,
                                                      const ModelDrafterOptions& options);

  [[nodiscard]] std::string description() const override;
  [[nodiscard]] backend::MemoryUse memory() const override { return runner_->memory(); }
  void forget(std::int32_t seat) override;
  Result<std::int64_t> draft(std::span<const DraftTask> tasks) override;

 private:
  /// What the draft model has read of a sequence. Its recurrent state, if it has one, is kept after
  /// each of the last tokens, because guesses are taken back.
  struct Seat {
    std::vector<TokenId> read;
    std::size_t n_reached = 0;  // the most tokens that `read` has had
    std::vector<std::int32_t> block_table;
    std::vector<std::int32_t> state_slots;  // of the state after n tokens: entry n mod size

    [[nodiscard]] std::int32_t state_after(std::size_t n_tokens) const {
      return state_slots[n_tokens % state_slots.size()];
    }
  };
  /// A task under way.
  struct Work {
    Seat* seat;
    std::span<const TokenId> tokens;
    std::vector<TokenId>* drafts;
    std::int64_t depth;
    bool takes_guess = false;  // from the step that is being put together
  };

  ModelDrafter(const model::Model& model, const ModelDrafterOptions& options,
               std::unique_ptr<Runner> runner);

  /// Guesses run ahead by max_depth - 1 tokens; one state is that before them, one to spare.
  static std::int64_t states_per_seat(const ModelDrafterOptions& options) {
    return options.max_depth + 1;
  }
  /// Takes back what differs from `tokens`, and the last of them, whose logits are wanted.
  void rewind(Seat& seat, std::span<const TokenId> tokens) const;
  /// Reads what has not been read of each work's tokens, and takes the first guess.
  Result<void> read_unread();
  /// Reads the last guess of each work, and takes another.
  Result<void> read_guesses();
  void add_rows(Work& work, std::span<const TokenId> tokens, bool wants_guess);
  Result<void> run();

  const model::Model& model_;
  ModelDrafterOptions options_;
  std::unique_ptr<Runner> runner_;
  bool is_recurrent_;
  std::vector<Seat> seats_;
  std::vector<Work> work_;
  StepBlock step_block_;
};

}  // namespace hearth::engine
