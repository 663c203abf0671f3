#include "engine/step_block.h"

#include <algorithm>

namespace hearth::engine {

void StepBlock::clear() {
  tokens_.clear();
  token_sources_.clear();
  has_sources_ = false;
  positions_.clear();
  sequences_.clear();
  logit_rows_.clear();
  state_slots_.clear();
  state_targets_.clear();
  row_sources_.clear();
  row_targets_.clear();
  tables_.clear();
}

std::int32_t StepBlock::add_sequence(std::span<const std::int32_t> block_table,
                                     std::int32_t state_slot) {
  tables_.push_back(block_table);
  state_slots_.push_back(state_slot);
  return static_cast<std::int32_t>(tables_.size()) - 1;
}

void StepBlock::add_row(std::int32_t sequence, const StepRow& row) {
  if (row.wants_logits) {
    logit_rows_.push_back(static_cast<std::int32_t>(n_rows()));
  }
  tokens_.push_back(row.token);
  token_sources_.push_back(row.token_source);
  has_sources_ = has_sources_ || row.token_source >= 0;
  positions_.push_back(static_cast<std::int32_t>(row.position));
  sequences_.push_back(sequence);
  state_targets_.push_back(row.state_target);
  row_sources_.push_back(row.row_source);
  row_targets_.push_back(row.row_target);
}

graph::StepView StepBlock::view() {
  std::size_t stride = 0;
  for (const auto& table : tables_) {
    stride = std::max(stride, table.size());
  }
  constexpr std::int32_t no_block = -1;
  block_tables_.assign(stride * tables_.size(), no_block);
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    std::copy(tables_[i].begin(), tables_[i].end(),
              block_tables_.begin() + static_cast<std::ptrdiff_t>(i * stride));
  }
  return {.tokens = tokens_,
          .token_sources = has_sources_ ? std::span<const std::int32_t>(token_sources_)
                                        : std::span<const std::int32_t>(),
          .positions = positions_,
          .sequences = sequences_,
          .logit_rows = logit_rows_,
          .block_tables = block_tables_,
          .table_stride = static_cast<std::int64_t>(stride),
          .state_slots = state_slots_,
          .state_targets = state_targets_,
          .row_sources = row_sources_,
          .row_targets = row_targets_};
}

}  // namespace hearth::engine
