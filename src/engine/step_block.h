#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/step.h"

namespace hearth::engine {

/// One row of a step; what a model does not have need not be named.
struct StepRow {
  TokenId token{};
  std::int32_t token_source = -1;  // instead: a logit row of the step before
  std::int64_t position = 0;
  bool wants_logits = false;
  std::int32_t state_target = 0;  // the slot in which the recurrent state after it goes
  std::int32_t row_source = 0;    // places in the row store
  std::int32_t row_target = 0;
};

/// The arrays behind a StepView, filled anew for every step without allocating once they have
/// grown.
class StepBlock {
 public:
  void clear();

  /// Adds a sequence with its block table and state slot; returns its index for add_row().
  std::int32_t add_sequence(std::span<const std::int32_t> block_table, std::int32_t state_slot);
  /// The next row of that sequence, whose rows follow each other.
  void add_row(std::int32_t sequence, const StepRow& row);

  [[nodiscard]] std::int64_t n_rows() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// Valid until the next change.
  [[nodiscard]] graph::StepView view();

 private:
  std::vector<TokenId> tokens_;
  std::vector<std::int32_t> token_sources_;
  bool has_sources_ = false;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> sequences_;
  std::vector<std::int32_t> logit_rows_;
  std::vector<std::int32_t> state_targets_;
  std::vector<std::int32_t> row_sources_;
  std::vector<std::int32_t> row_targets_;
  std::vector<std::int32_t> state_slots_;  // per sequence
  std::vector<std::span<const std::int32_t>> tables_;
  std::vector<std::int32_t> block_tables_;  // tables_ padded to equal length
};

}  // namespace hearth::engine
