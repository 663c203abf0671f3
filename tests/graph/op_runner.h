#pragma once
/// Runs one op through its shape rule and reference kernel.

#include <cstdint>
#include <vector>

#include "graph/ops/all_ops.h"

namespace hearth::graph {

/// An activation with its data, [rows, features].
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t features = 0;
  std::vector<float> data;

  [[nodiscard]] float at(std::int64_t row, std::int64_t feature) const {
    return data[static_cast<std::size_t>(row * features + feature)];
  }
};

/// Values in [-1, 1], a function of the seed.
Matrix random_matrix(std::int64_t rows, std::int64_t features, std::uint32_t seed);

/// A step in storage of its own; by default one sequence from position 0 on.
struct OwnedStep {
  explicit OwnedStep(std::int64_t n_rows, std::int32_t first_position = 0);

  [[nodiscard]] StepView view() const;

  std::vector<TokenId> tokens;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> sequences;
  std::vector<std::int32_t> logit_rows;
  std::vector<std::int32_t> block_tables{0};
  std::int64_t table_stride = 1;
  std::vector<std::int32_t> state_slots{0};
  std::vector<std::int32_t> state_targets;
  std::vector<std::int32_t> row_sources;
  std::vector<std::int32_t> row_targets;
};

/// The result, or the fault that the shape rule found.
Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs, const OwnedStep& step, HostKvCache& kv);
Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs, const OwnedStep& step,
                      HostStateCache& states);
Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs, const OwnedStep& step, HostRowStore& rows);
Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs, const OwnedStep& step);
Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs);

}  // namespace hearth::graph
