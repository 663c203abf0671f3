/// Products by chosen experts: a row of results per row of the step and slot; what the experts say
/// is added up in a launch of its own.

#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "backend/gpu/executor/columns.h"
#include "backend/gpu/executor/matrix_product.h"
#include "backend/gpu/executor/recorder.h"
#include "backend/gpu/executor/tile_products.h"
#include "backend/gpu/kernels/expert_sum.h"
#include "base/checked.h"

namespace hearth::backend::gpu {
namespace {

MatrixProduct product_of(const graph::ExpertMatMul& matmul, graph::ValueId routing) {
  return {.weight = matmul.weight,
          .n_out = matmul.n_out,
          .experts = ProductExperts{routing, matmul.first_row}};
}

/// x of the product is [rows, n_used, n_in] where that is more than one row for all slots.
bool has_x_per_slot(const graph::ExpertMatMul& matmul, graph::ValueId x, const Recorder& recorder) {
  return recorder.desc(x).features != recorder.host_weight(matmul.weight).tensor.shape.back();
}

/// activation(gate) * up; returns the rows of each expert, if they were brought together.
Result<std::optional<ExpertRows>> record_gate(const plan::ExpertGate& launch, MatrixInput& input,
                                              Recorder& recorder) {
  MatrixProduct gate = product_of(launch.gate, launch.routing);
  MatrixProduct up = product_of(launch.up, launch.routing);
  up.y = recorder.value(launch.output);
  gate.prepare(input, recorder);
  const auto rows = gate.experts->rows;
  HEARTH_TRY(record_gated_products(std::move(gate), std::move(up), launch.kind, input, recorder));
  return rows;
}

/// What each expert says of its rows, not yet added up.
Result<SlotSum> record_slots(const plan::ExpertDown& launch, std::optional<ExpertRows> rows,
                             Recorder& recorder) {
  MatrixInput input(launch.input);
  MatrixProduct down = product_of(launch.down, launch.routing);
  down.experts->has_x_per_slot = has_x_per_slot(launch.down, launch.input, recorder);
  down.experts->rows = std::move(rows);
  down.y = recorder.scratch(std::int64_t{recorder.rows(launch.routing)} *
                            (recorder.features(launch.routing) / 2) * down.n_out * 4);
  down.prepare(input, recorder);
  recorder.barrier();
  HEARTH_TRY(down.record(input, recorder));
  return SlotSum{down.y, launch.routing};
}

void record_sum(const plan::ExpertDown& launch, const SlotSum& sum, Recorder& recorder) {
  const ExpertSumParams params{static_cast<u32>(launch.down.n_out),
                               recorder.features(launch.routing) / 2, launch.residual ? 1u : 0u};
  recorder.barrier();
  recorder.dispatch(KernelId::expert_sum_f32,
                    {recorder.step().counts, sum.said, recorder.value(launch.routing),
                     launch.residual ? recorder.value(*launch.residual) : recorder.absent(),
                     recorder.value(launch.output)},
                    params,
                    {static_cast<u32>(ceil_div(launch.down.n_out, 4 * EXPERT_SUM_THREADS)),
                     recorder.rows(launch.routing)},
                    EXPERT_SUM_THREADS);
}

/// The expert that all rows share, which is added to what the others say.
void record_shared(const plan::ExpertDown& down, const plan::Projection& shared, const SlotSum& sum,
                   Recorder& recorder) {
  MatrixInput input(shared.input, shared.norm, shared.input_gate);
  MatrixProduct product{.weight = shared.parts.front().matmul.weight,
                        .n_out = down.down.n_out,
                        .residual = down.residual};
  if (shared.row_gate) {
    product.gate = {PRODUCT_ROW_GATE, shared.row_gate->kind,
                    recorder.value(shared.row_gate->value)};
  }
  product.y = recorder.value(shared.output);
  product.prepare(input, recorder);
  recorder.barrier();
  record_columns(std::span<const MatrixProduct>(&product, 1), input, recorder, &sum);
}

/// Whether a projection is that of the expert which all rows share, added to what `down` gives.
bool is_shared_in_columns(const plan::ExpertDown& down, const plan::Projection& shared,
                          const Recorder& recorder) {
  const MatrixProduct product{.weight = shared.parts.front().matmul.weight,
                              .n_out = down.down.n_out,
                              .bias = shared.parts.front().matmul.bias};
  return shared.residual == down.output && shared.parts.size() == 1 && !shared.gate &&
         has_one_reader(down.output, recorder) &&
         takes_columns(product, MatrixInput(shared.input), recorder);
}

/// Whether all products of both bring the rows of each expert together alike: those that take
/// columns, and of prompts those that take tiles.
bool share_rows(const plan::ExpertGate& gate, const plan::ExpertDown& down,
                const Recorder& recorder) {
  const MatrixInput input(gate.input);
  const MatrixInput down_input(down.input);
  const MatrixProduct first = product_of(gate.gate, gate.routing);
  const MatrixProduct second = product_of(gate.up, gate.routing);
  const MatrixProduct last = product_of(down.down, down.routing);
  if (gate.routing != down.routing) {
    return false;
  }
  if (recorder.rows(gate.input) >= min_prompt_rows) {
    return takes_tiles(first, input, recorder) && takes_tiles(second, input, recorder) &&
           takes_tiles(last, down_input, recorder);
  }
  return takes_column_pair(first, second, input, recorder) &&
         takes_columns(last, down_input, recorder);
}

bool is_same(const std::optional<graph::RmsNorm>& a, const std::optional<graph::RmsNorm>& b) {
  return a.has_value() == b.has_value() && (!a || (a->weight == b->weight && a->eps == b->eps));
}

}  // namespace

Result<void> record_expert_gate(const plan::ExpertGate& launch, Recorder& recorder) {
  MatrixInput input(launch.input, launch.norm);
  HEARTH_TRY(record_gate(launch, input, recorder));
  return {};
}

Result<void> record_expert_down(const plan::ExpertDown& launch, Recorder& recorder) {
  HEARTH_ASSIGN(const SlotSum sum, record_slots(launch, std::nullopt, recorder));
  record_sum(launch, sum, recorder);
  return {};
}

Result<std::size_t> record_routed_experts(std::span<const plan::Launch> launches,
                                          Recorder& recorder) {
  constexpr std::size_t n_merged = 4;
  if (launches.size() < n_merged) {
    return 0;
  }
  const auto* projection = std::get_if<plan::Projection>(&launches[0]);
  const auto* router = std::get_if<plan::OpLaunch>(&launches[1]);
  const auto* gate = std::get_if<plan::ExpertGate>(&launches[2]);
  const auto* down = std::get_if<plan::ExpertDown>(&launches[3]);
  if (projection == nullptr || router == nullptr || gate == nullptr || down == nullptr ||
      projection->input != gate->input || !is_same(projection->norm, gate->norm) ||
      projection->input_gate || !share_rows(*gate, *down, recorder)) {
    return 0;
  }
  MatrixInput input(projection->input, projection->norm);
  HEARTH_TRY(record_projection(*projection, input, recorder));
  recorder.barrier();
  HEARTH_TRY(record_op(*router, recorder));
  recorder.barrier();
  HEARTH_ASSIGN(auto rows, record_gate(*gate, input, recorder));
  recorder.barrier();
  HEARTH_ASSIGN(const SlotSum sum, record_slots(*down, std::move(rows), recorder));
  const auto* shared =
      launches.size() == n_merged ? nullptr : std::get_if<plan::Projection>(&launches[n_merged]);
  if (shared == nullptr || !is_shared_in_columns(*down, *shared, recorder)) {
    record_sum(*down, sum, recorder);
    return n_merged;
  }
  static_assert(n_merged + 1 <= max_merged_launches);
  record_shared(*down, *shared, sum, recorder);
  return n_merged + 1;
}

}  // namespace hearth::backend::gpu
