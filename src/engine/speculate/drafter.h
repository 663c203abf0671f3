#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "base/token_id.h"

namespace hearth::engine {

/// A sequence to guess the next tokens of.
struct DraftTask {
  std::int32_t seat = 0;                      // which of the engine's running sequences it is
  std::span<const TokenId> tokens;            // prompt and output so far
  std::int64_t n_computed = 0;                // of them by the model
  std::span<const std::int32_t> block_table;  // of the model's KV cache
  std::int64_t depth = 0;                     // how many guesses are wanted, at least one
  std::vector<TokenId>* drafts = nullptr;     // they are appended here; fewer are allowed
};

/// Guesses how sequences go on. The model checks every guess against the token that it chooses
/// itself, so guesses change how long an answer takes and nothing else. One thread at a time.
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// One line for people.
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual backend::MemoryUse memory() const = 0;

  /// `seat` belongs to another sequence from now on.
  virtual void forget(std::int32_t seat) = 0;
  /// Guesses for every task, at most one per seat. Returns how many tokens had to be read beyond
  /// those of a steady run, e.g. of a prompt. Errors: the device failed.
  virtual Result<std::int64_t> draft(std::span<const DraftTask> tasks) = 0;

  /// Where the model's step stores its hidden row of a position, if it stores any.
  [[nodiscard]] virtual std::int32_t stored_row(std::int32_t /*seat*/,
                                                std::int64_t /*position*/) const {
    return 0;
  }
  /// Called after each step, with the sequences that go on; their depths mean nothing.
  virtual Result<void> follow(std::span<const DraftTask> /*tasks*/) { return {}; }
};

}  // namespace hearth::engine
