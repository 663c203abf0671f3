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
/// one sequence: a prompt chunk contributes many rows, a decoding sequence one. Rows of a sequence
/// stand in ascending position.
struct StepView {
  std::span<const TokenId> tokens;          // [n_rows]
  std::span<const std::int32_t> positions;  // [n_rows], the token's index in its sequence
  std::span<const std::int32_t> sequences;  // [n_rows], index into the block tables
  /// [n_logit_rows], ascending: the rows whose logits are wanted.
  std::span<const std::int32_t> logit_rows;
  /// [n_sequences, table_stride]: entry i is the block of positions 16 i ... 16 i + 15.
  std::span<const std::int32_t> block_tables;
  std::int64_t table_stride = 0;
  /// [n_sequences]: where each keeps its recurrent state; may be empty for models without any.
  std::span<const std::int32_t> state_slots;

  [[nodiscard]] std::int64_t n_rows() const { return static_cast<std::int64_t>(tokens.size()); }
  [[nodiscard]] std::int64_t n_logit_rows() const {
    return static_cast<std::int64_t>(logit_rows.size());
  }

  /// The block table of the sequence that `row` belongs to.
  [[nodiscard]] const std::int32_t* block_table(std::int64_t row) const {
    return block_tables.data() + sequences[static_cast<std::size_t>(row)] * table_stride;
  }
  /// The state slot of the sequence that `row` belongs to.
  [[nodiscard]] std::int64_t state_slot(std::int64_t row) const {
    return state_slots[static_cast<std::size_t>(sequences[static_cast<std::size_t>(row)])];
  }
};

}  // namespace hearth::graph
