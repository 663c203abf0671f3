#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "engine/state/slot_pool.h"
#include "sampling/history.h"

namespace hearth::engine {

enum class SequenceId : std::int64_t {};

/// One request on its way through the engine.
struct Sequence {
  SequenceId id{};
  Request request;
  std::vector<TokenId> tokens;  // prompt, then output
  std::size_t n_prompt = 0;
  std::size_t n_computed = 0;             // tokens whose keys and values are in the cache
  std::size_t n_delivered = 0;            // output tokens already handed out
  std::vector<std::int32_t> block_table;  // empty while waiting for admission
  std::int64_t limit = 0;                 // of tokens; from here on set at admission
  std::int32_t seat = no_slot;            // among the running sequences
  std::int32_t state_slot = no_slot;      // of the state after n_computed tokens
  std::vector<std::int32_t> spare_slots;  // for the states after guesses
  bool is_read_along = false;             // by a drafter, so that guesses can be made
  std::vector<TokenId> drafts;            // guesses at the next tokens, which the next step checks
  std::optional<FinishReason> finished;
  std::optional<Error> error;

  [[nodiscard]] bool is_waiting() const { return block_table.empty() && !finished && !error; }
  [[nodiscard]] bool is_running() const { return !block_table.empty() && !finished && !error; }
  [[nodiscard]] std::size_t n_output() const { return tokens.size() - n_prompt; }
  [[nodiscard]] std::int64_t n_pending() const {
    return static_cast<std::int64_t>(tokens.size() - n_computed);
  }
  /// All but the last token are computed, and that is part of the answer.
  [[nodiscard]] bool is_decoding() const { return n_output() > 0 && n_pending() == 1; }
  [[nodiscard]] sampling::History history() const { return {tokens, n_prompt}; }
};

}  // namespace hearth::engine
