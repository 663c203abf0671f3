/// Products by chosen experts: a row of results per row of the step and slot; what the experts say
/// is added up in a launch of its own.

#include <utility>

#include "backend/gpu/executor/matrix_product.h"
#include "backend/gpu/executor/recorder.h"
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

}  // namespace

Result<void> record_expert_gate(const plan::ExpertGate& launch, Recorder& recorder) {
  MatrixInput input(launch.input, launch.norm);
  MatrixProduct up = product_of(launch.up, launch.routing);
  up.y = recorder.value(launch.output);
  return record_gated_products(product_of(launch.gate, launch.routing), std::move(up), launch.kind,
                               input, recorder);
}

Result<void> record_expert_down(const plan::ExpertDown& launch, Recorder& recorder) {
  MatrixInput input(launch.input);
  MatrixProduct down = product_of(launch.down, launch.routing);
  down.experts->has_x_per_slot = has_x_per_slot(launch.down, launch.input, recorder);
  down.y = recorder.scratch(std::int64_t{recorder.rows(launch.routing)} *
                            (recorder.features(launch.routing) / 2) * down.n_out * 4);
  down.prepare(input, recorder);
  recorder.barrier();
  HEARTH_TRY(down.record(input, recorder));
  recorder.barrier();
  const ExpertSumParams params{static_cast<u32>(down.n_out), recorder.features(launch.routing) / 2,
                               launch.residual ? 1u : 0u};
  recorder.dispatch(KernelId::expert_sum_f32,
                    {recorder.step().counts, down.y, recorder.value(launch.routing),
                     launch.residual ? recorder.value(*launch.residual) : recorder.absent(),
                     recorder.value(launch.output)},
                    params,
                    {static_cast<u32>(ceil_div(down.n_out, 4 * EXPERT_SUM_THREADS)),
                     recorder.rows(launch.routing)},
                    EXPERT_SUM_THREADS);
  return {};
}

}  // namespace hearth::backend::gpu
