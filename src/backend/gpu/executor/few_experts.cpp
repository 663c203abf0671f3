#include "backend/gpu/executor/few_experts.h"

#include <algorithm>

#include "backend/gpu/executor/columns.h"
#include "backend/gpu/executor/strips.h"
#include "backend/gpu/kernels/expert_down.h"
#include "backend/gpu/kernels/expert_gate.h"
#include "backend/gpu/kernels/weight_tiles.h"
#include "base/checked.h"

namespace hearth::backend::gpu {
namespace {

constexpr std::int64_t block_values = 256;

const TensorView& matrix(graph::WeightId weight, const Recorder& recorder) {
  return recorder.host_weight(weight).tensor;
}

/// Whether rows of a matrix of experts begin with a strip of tiles.
bool begins_strip(const graph::ExpertMatMul& product, const Recorder& recorder) {
  return recorder.is_tiled(product.weight) && product.first_row % TILE_ROWS == 0;
}

std::int64_t n_blocks(const plan::ExpertDown& down, const Recorder& recorder) {
  return recorder.features(down.input) / block_values;
}

/// Whether what the tiles of all experts of a row say fits, and of the shared one.
bool fits_work(const plan::ExpertDown& down, const plan::Projection* shared,
               const Recorder& recorder) {
  const auto n_floats = [&](graph::WeightId weight, std::int64_t blocks) {
    return blocks * STRIP_ROW_TERMS(strip_type(weight, recorder).value());
  };
  constexpr std::int64_t max_floats{DOWN_WORK};
  const std::int64_t n_shared =
      shared == nullptr ? 0 : recorder.features(shared->input) / block_values;
  return n_blocks(down, recorder) + n_shared <= STRIP_MAX_BLOCKS &&
         n_floats(down.down.weight, n_blocks(down, recorder)) +
                 (shared == nullptr ? 0
                                    : n_floats(shared->parts.front().matmul.weight, n_shared)) <=
             max_floats;
}

/// Strips for a threadgroup, so that all of n_lots threadgroups for each share run at once.
u32 strips_for_each_group(u32 n_strips, u32 n_lots, const Recorder& recorder) {
  const u32 n_groups = std::max(recorder.device().compute_units / n_lots, 1u);
  return static_cast<u32>(ceil_div(n_strips, n_groups));
}

/// The kernel for the type of a matrix.
KernelId kernel_for_type(std::string_view prefix, graph::WeightId weight,
                         const Recorder& recorder) {
  const auto& [name, tensor, is_mapped] = recorder.host_weight(weight);
  return kernel_for(prefix, tensor.dtype, name).value();
}

/// Of one row: the kernel for the type of gate, which chooses among few, or that for all.
KernelId gate_kernel(const ExpertGateParams& params, graph::WeightId gate,
                     const Recorder& recorder) {
  return params.n_experts <= GATE_TYPE_MAX_EXPERTS && params.n_used <= GATE_TYPE_MAX_USED
             ? kernel_for_type("expert_gate_", gate, recorder)
             : KernelId::expert_gate;
}

/// Of one row: the kernel for the type of down, if the shared expert has it, too, or that for all.
KernelId down_kernel(const ExpertDownParams& params, graph::WeightId down,
                     const Recorder& recorder) {
  return params.shared_n == 0 || params.shared_type == params.type
             ? kernel_for_type("expert_down_", down, recorder)
             : KernelId::expert_down;
}

}  // namespace

bool takes_expert_gate(const plan::OpLaunch& router, const plan::ExpertGate& gate,
                       const Recorder& recorder) {
  const u32 n = recorder.features(gate.input);
  return router.output == gate.routing && recorder.rows(gate.input) <= max_strip_rows &&
         !prefers_columns(recorder.rows(gate.input), gate.gate.weight, recorder) &&
         n <= EXPERT_MAX_IN && recorder.features(router.inputs.front()) <= GATE_MAX_EXPERTS &&
         recorder.features(gate.routing) / 2 <= ROUTER_MAX_USED &&
         begins_strip(gate.gate, recorder) && begins_strip(gate.up, recorder) &&
         strip_type(gate.gate.weight, recorder) == strip_type(gate.up.weight, recorder) &&
         recorder.expert_rows(gate.gate.weight) == recorder.expert_rows(gate.up.weight) &&
         matrix(gate.gate.weight, recorder).shape.back() == n &&
         (!gate.norm || matrix(gate.norm->weight, recorder).shape.back() == n);
}

void record_routed_gate(const plan::OpLaunch& router, const plan::ExpertGate& gate,
                        Recorder& recorder) {
  ExpertGateParams params{
      .n = recorder.features(gate.input),
      .has_norm = gate.norm ? 1u : 0u,
      .eps = gate.norm ? gate.norm->eps : 0.0f,
      .n_experts = recorder.features(router.inputs.front()),
      .n_used = recorder.features(gate.routing) / 2,
      .n_out = static_cast<u32>(gate.gate.n_out),
      .type = *strip_type(gate.gate.weight, recorder),
      .expert_rows = recorder.expert_rows(gate.gate.weight),
      .first_row = {static_cast<u32>(gate.gate.first_row), static_cast<u32>(gate.up.first_row)},
      .activation = static_cast<u32>(gate.kind)};
  const auto n_strips = static_cast<u32>(ceil_div(params.n_out, STRIP_ROWS));
  const u32 rows = recorder.rows(gate.input);
  const bool by_rows = rows > 1;
  const u32 n_units = 2 * params.n / static_cast<u32>(block_values);
  const u32 most = by_rows
                       ? GATE_ROWS_STRIPS
                       : std::min<u32>(EXPERT_MAX_UNITS(params.type) / n_units, EXPERT_MAX_STRIPS);
  params.group_strips =
      std::min(strips_for_each_group(n_strips, params.n_used * rows, recorder), most);
  recorder.dispatch(
      by_rows ? KernelId::expert_gate_rows : gate_kernel(params, gate.gate.weight, recorder),
      {recorder.step().counts, recorder.value(gate.input),
       gate.norm ? recorder.weight(gate.norm->weight) : recorder.absent(),
       recorder.value(router.inputs.front()), recorder.weight(gate.gate.weight),
       recorder.weight(gate.up.weight), recorder.value(gate.routing), recorder.value(gate.output)},
      params, {static_cast<u32>(ceil_div(n_strips, params.group_strips)), params.n_used, rows},
      STRIP_THREADS);
}

bool takes_expert_down(const plan::ExpertDown& down, const Recorder& recorder) {
  const u32 n_used = recorder.features(down.routing) / 2;
  const std::int64_t n_in = matrix(down.down.weight, recorder).shape.back();
  return recorder.rows(down.input) <= max_strip_rows &&
         !prefers_columns(recorder.rows(down.input), down.down.weight, recorder) &&
         n_used < DOWN_MAX_SLOTS && recorder.features(down.input) == n_used * n_in &&
         begins_strip(down.down, recorder) && fits_work(down, nullptr, recorder);
}

bool is_shared_expert(const plan::ExpertDown& down, const plan::Projection& shared,
                      const Recorder& recorder) {
  return shared.residual == down.output && shared.parts.size() == 1 && !shared.norm &&
         shared.row_gate && !shared.row_gate->columns && shared.input_gate &&
         !shared.input_gate->columns && !shared.parts.front().matmul.bias &&
         recorder.is_tiled(shared.parts.front().matmul.weight) &&
         fits_work(down, &shared, recorder);
}

void record_expert_down(const plan::ExpertDown& down, const plan::Projection* shared,
                        Recorder& recorder) {
  const TensorView& weight = matrix(down.down.weight, recorder);
  ExpertDownParams params{.n = static_cast<u32>(weight.shape.back()),
                          .n_out = static_cast<u32>(down.down.n_out),
                          .n_used = recorder.features(down.routing) / 2,
                          .type = *strip_type(down.down.weight, recorder),
                          .expert_rows = recorder.expert_rows(down.down.weight),
                          .first_row = static_cast<u32>(down.down.first_row),
                          .has_residual = down.residual ? 1u : 0u};
  BufferPart shared_x = recorder.absent();
  BufferPart shared_gate = recorder.absent();
  BufferPart row_gate = recorder.absent();
  BufferPart shared_weight = recorder.absent();
  if (shared != nullptr) {
    const graph::WeightId id = shared->parts.front().matmul.weight;
    params.shared_n = recorder.features(shared->input);
    params.shared_type = *strip_type(id, recorder);
    params.activation = static_cast<u32>(shared->input_gate->kind);
    params.row_activation = static_cast<u32>(shared->row_gate->kind);
    shared_x = recorder.value(shared->input);
    shared_gate = recorder.value(shared->input_gate->value);
    row_gate = recorder.value(shared->row_gate->value);
    shared_weight = recorder.weight(id);
  }
  const u32 rows = recorder.rows(down.input);
  const auto n_strips = static_cast<u32>(ceil_div(params.n_out, STRIP_ROWS));
  const u32 n_slots = params.n_used + (shared != nullptr ? 1 : 0);
  const bool by_rows = rows > 1;
  params.group_strips =
      by_rows ? std::min<u32>(strips_for_each_group(n_strips, rows, recorder), DOWN_MAX_STRIPS) : 1;
  recorder.dispatch(
      by_rows ? KernelId::expert_down_rows : down_kernel(params, down.down.weight, recorder),
      {recorder.step().counts, recorder.value(down.input), recorder.value(down.routing),
       down.residual ? recorder.value(*down.residual) : recorder.absent(),
       recorder.weight(down.down.weight), std::move(shared_x), std::move(shared_gate),
       std::move(row_gate), std::move(shared_weight),
       recorder.value(shared != nullptr ? shared->output : down.output)},
      params, {static_cast<u32>(ceil_div(n_strips, params.group_strips)), rows},
      by_rows ? DOWN_ROWS_THREADS(n_slots) : DOWN_THREADS);
}

}  // namespace hearth::backend::gpu
