#include "backend/gpu/executor/matrix_product.h"

#include "backend/gpu/executor/strips.h"
#include "base/checked.h"
#include "base/format.h"

namespace hearth::backend::gpu {

Result<void> MatrixProduct::record(const MatrixInput& input, Recorder& recorder) const {
  const auto& [name, tensor, is_mapped] = recorder.host_weight(weight);
  HEARTH_ASSIGN(const KernelId kernel,
                kernel_for("product_", tensor.dtype, format("tensor '{}'", name)));
  ProductParams params{.axis = recorder.axis(input.value()),
                       .n_in = static_cast<u32>(tensor.shape.back()),
                       .n_out = static_cast<u32>(n_out),
                       .has_bias = bias ? 1u : 0u,
                       .gate = gate.kind,
                       .activation = static_cast<u32>(gate.activation),
                       .has_residual = residual ? 1u : 0u};
  const u32 capacity = recorder.rows(input.value());
  const auto groups = static_cast<u32>(ceil_div(n_out, PRODUCT_GROUP_OUTPUTS));
  Dim3 grid{static_cast<u32>(ceil_div(capacity, PRODUCT_GROUP_ROWS)), groups};
  BufferPart routing = recorder.absent();
  if (experts) {
    params.n_used = recorder.features(experts->routing) / 2;
    params.expert_rows = static_cast<u32>(tensor.shape[1]);
    params.first_row = static_cast<u32>(experts->first_row);
    params.has_x_per_slot = experts->has_x_per_slot ? 1 : 0;
    grid = {params.n_used, groups, capacity};
    routing = recorder.value(experts->routing);
  }
  std::vector<BufferPart> buffers{recorder.step().counts, recorder.weight(weight)};
  const auto& x = input.buffers(weight, recorder);
  buffers.insert(buffers.end(), x.begin(), x.end());
  buffers.push_back(routing);
  buffers.push_back(bias ? recorder.weight(*bias) : recorder.absent());
  buffers.push_back(gate.kind == PRODUCT_NO_GATE ? recorder.absent() : gate.value);
  buffers.push_back(residual ? recorder.value(*residual) : recorder.absent());
  buffers.push_back(y);
  recorder.dispatch(kernel, std::move(buffers), params, grid, PRODUCT_THREADS);
  return {};
}

Result<void> record_gated_products(MatrixProduct gate, MatrixProduct up,
                                   graph::ActivationKind activation, MatrixInput& input,
                                   Recorder& recorder) {
  const auto type_of = [&recorder](const MatrixProduct& product) {
    return recorder.host_weight(product.weight).tensor.dtype;
  };
  if (type_of(gate) == type_of(up) && type_of(gate) != DType::f32 &&
      takes_strips(gate, input, recorder) && takes_strips(up, input, recorder)) {
    record_strip_pair(gate, up, activation, input, recorder);
    return {};
  }
  input.prepare_for(gate.weight, recorder);
  input.prepare_for(up.weight, recorder);
  recorder.barrier();
  const std::int64_t slots = gate.experts ? recorder.features(gate.experts->routing) / 2 : 1;
  gate.y = recorder.scratch(recorder.rows(input.value()) * slots * gate.n_out * 4);
  HEARTH_TRY(gate.record(input, recorder));
  recorder.barrier();
  up.gate = {PRODUCT_ELEMENT_GATE, activation, gate.y};
  return up.record(input, recorder);
}

}  // namespace hearth::backend::gpu
