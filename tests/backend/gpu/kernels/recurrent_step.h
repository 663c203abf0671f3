#pragma once
/// A step of recurrent layers as kernels get it.

#include <vector>

#include "backend/gpu/dialect/scalars.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {

/// Rows of one sequence of a step: positions first, first + 1, ...
struct SequenceRows {
  std::int32_t first_position;
  std::int32_t n_rows;
  std::int32_t slot;                  // of its state before
  std::vector<std::int32_t> targets;  // slot of the state after each row; all `slot` if empty
};

/// The step, and the same as the buffers of kernels.
struct RecurrentStep {
  explicit RecurrentStep(const std::vector<SequenceRows>& sequences) : step(0) {
    step.state_slots.clear();
    for (const auto& each : sequences) {
      for (std::int32_t i = 0; i < each.n_rows; ++i) {
        step.tokens.push_back(TokenId{0});
        step.positions.push_back(each.first_position + i);
        step.sequences.push_back(static_cast<std::int32_t>(step.state_slots.size()));
        step.state_targets.push_back(
            each.targets.empty() ? each.slot : each.targets[static_cast<std::size_t>(i)]);
      }
      step.state_slots.push_back(each.slot);
      row_starts.push_back(static_cast<u32>(step.positions.size()));
    }
    const graph::StepView view = step.view();
    for (std::int64_t row = 0; row < view.n_rows(); ++row) {
      before.push_back(static_cast<std::int32_t>(view.state_before(row)));
      after.push_back(static_cast<std::int32_t>(view.state_after(row)));
    }
  }

  [[nodiscard]] u32 n_rows() const { return row_starts.back(); }
  [[nodiscard]] u32 n_sequences() const { return static_cast<u32>(row_starts.size() - 1); }

  graph::OwnedStep step;
  std::vector<u32> row_starts{0};
  std::vector<std::int32_t> before, after;
};

/// Steps that follow each other over four slots: prompts, a sequence that starts anew in a slot,
/// guesses of which each has a slot of its own, and going on from one of those.
inline std::vector<RecurrentStep> recurrent_steps() {
  std::vector<RecurrentStep> steps;
  steps.emplace_back(std::vector<SequenceRows>{{0, 11, 2, {}}, {0, 2, 0, {}}});
  steps.emplace_back(std::vector<SequenceRows>{{11, 3, 2, {2, 1, 3}}, {2, 1, 0, {}}});
  steps.emplace_back(std::vector<SequenceRows>{{13, 1, 1, {}}, {0, 1, 0, {}}});
  steps.emplace_back(std::vector<SequenceRows>{{14, 37, 1, {}}, {0, 19, 3, {}}});
  return steps;
}

}  // namespace hearth::backend::gpu
