#include "tests/graph/op_runner.h"

#include <random>

#include "tests/graph/random_floats.h"

namespace hearth::graph {

Matrix random_matrix(std::int64_t rows, std::int64_t features, std::uint32_t seed) {
  std::mt19937 random(seed);
  Matrix matrix{rows, features, std::vector<float>(static_cast<std::size_t>(rows * features))};
  for (auto& value : matrix.data) {
    value = uniform_float(random, -1.0f, 1.0f);
  }
  return matrix;
}

OwnedStep::OwnedStep(std::int64_t n_rows, std::int32_t first_position) {
  for (std::int64_t row = 0; row < n_rows; ++row) {
    tokens.push_back(TokenId{0});
    positions.push_back(first_position + static_cast<std::int32_t>(row));
    sequences.push_back(0);
    logit_rows.push_back(static_cast<std::int32_t>(row));
  }
}

StepView OwnedStep::view() const {
  return {.tokens = tokens,
          .positions = positions,
          .sequences = sequences,
          .logit_rows = logit_rows,
          .block_tables = block_tables,
          .table_stride = table_stride,
          .state_slots = state_slots,
          .state_targets = state_targets,
          .row_sources = row_sources,
          .row_targets = row_targets};
}

namespace {

Result<Matrix> run_with(const AnyOp& op, const WeightTable& weights,
                        const std::vector<Matrix>& inputs, const OwnedStep& step, HostKvCache& kv,
                        HostStateCache& states, HostRowStore& stored) {
  const StepView view = step.view();
  std::vector<ValueDesc> descs;
  std::vector<ConstRows> rows;
  for (const auto& input : inputs) {
    descs.push_back({RowAxis::batch, input.rows, input.features});
    rows.push_back({input.data.data(), input.rows, input.features});
  }
  auto desc =
      std::visit([&](const auto& each) { return each.infer(descs, weights, view.n_rows()); }, op);
  if (!desc) {
    return Failure(desc.error());
  }
  Matrix out{desc->rows, desc->features,
             std::vector<float>(static_cast<std::size_t>(desc->rows * desc->features))};
  const OpContext context{weights, view, kv, states, stored};
  std::visit(
      [&](const auto& each) { each.run(context, rows, {out.data.data(), out.rows, out.features}); },
      op);
  return out;
}

}  // namespace

Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs, const OwnedStep& step, HostKvCache& kv) {
  HostStateCache no_states(StateCacheDesc{});
  HostRowStore no_rows(RowStoreDesc{});
  return run_with(op, weights, inputs, step, kv, no_states, no_rows);
}

Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs, const OwnedStep& step,
                      HostStateCache& states) {
  HostKvCache no_cache(KvCacheDesc{});
  HostRowStore no_rows(RowStoreDesc{});
  return run_with(op, weights, inputs, step, no_cache, states, no_rows);
}

Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs, const OwnedStep& step,
                      HostRowStore& rows) {
  HostKvCache no_cache(KvCacheDesc{});
  HostStateCache no_states(StateCacheDesc{});
  return run_with(op, weights, inputs, step, no_cache, no_states, rows);
}

Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs, const OwnedStep& step) {
  HostKvCache no_cache(KvCacheDesc{});
  return run_op(op, weights, inputs, step, no_cache);
}

Result<Matrix> run_op(const AnyOp& op, const WeightTable& weights,
                      const std::vector<Matrix>& inputs) {
  return run_op(op, weights, inputs, OwnedStep(inputs.front().rows));
}

}  // namespace hearth::graph
