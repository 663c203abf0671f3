#pragma once
/// The step block: everything that changes from one step to the next. A plan is built once and
/// reads lengths, positions and slots from here, so nothing about a step is ever baked into it.

#include <cstdint>
#include <span>

#include "base/token_id.h"

namespace hearth::graph {

/// Keys and values of this many consecutive positions share one block of the paged cache.
inline constexpr int kv_block_tokens = 16;

/// Borrowed view of one step: a ragged batch of rows from several sequences. A row is one token of
/// one sequence: a prompt chunk contributes many rows, a decoding sequence one, or several where
/// guesses are checked. The rows of a sequence follow each other, in ascending position.
struct StepView {
  std::span<const TokenId> tokens;  // [n_rows]
  /// [n_rows]: the logit row of the step before whose largest is the token, or -1 for the one in
  /// `tokens`. Empty but where that step is still under way (backend::StepQueue).
  std::span<const std::int32_t> token_sources;
  std::span<const std::int32_t> positions;  // [n_rows], the token's index in its sequence
  std::span<const std::int32_t> sequences;  // [n_rows], index into the block tables
  /// [n_logit_rows], ascending: the rows whose logits are wanted.
  std::span<const std::int32_t> logit_rows;
  /// [n_sequences, table_stride]: entry i is the block of positions 16 i ... 16 i + 15.
  std::span<const std::int32_t> block_tables;
  std::int64_t table_stride = 0;
  /// [n_sequences]: where each has its recurrent state; may be empty for models without any.
  std::span<const std::int32_t> state_slots;
  /// [n_rows]: where the state after each row goes, from which the next row of the sequence goes
  /// on. Rows that may turn out wrong leave earlier states alone. Empty: all stay in state_slots.
  std::span<const std::int32_t> state_targets;
  /// [n_rows]: places in the row store, for graphs that load rows and for graphs that store them.
  /// Targets differ; -1: nobody will load that row.
  std::span<const std::int32_t> row_sources;
  std::span<const std::int32_t> row_targets;

  [[nodiscard]] std::int64_t n_rows() const { return static_cast<std::int64_t>(tokens.size()); }
  [[nodiscard]] std::int64_t n_logit_rows() const {
    return static_cast<std::int64_t>(logit_rows.size());
  }

  /// The block table of the sequence that `row` belongs to.
  [[nodiscard]] const std::int32_t* block_table(std::int64_t row) const {
    return block_tables.data() + sequences[static_cast<std::size_t>(row)] * table_stride;
  }
  /// The slots of the state before and after `row`.
  [[nodiscard]] std::int64_t state_before(std::int64_t row) const {
    const auto i = static_cast<std::size_t>(row);
    const bool is_first = i == 0 || sequences[i - 1] != sequences[i];
    return is_first || state_targets.empty() ? state_slots[static_cast<std::size_t>(sequences[i])]
                                             : state_targets[i - 1];
  }
  [[nodiscard]] std::int64_t state_after(std::int64_t row) const {
    return state_targets.empty() ? state_before(row) : state_targets[static_cast<std::size_t>(row)];
  }
};

}  // namespace hearth::graph
