/// Projection: the input is normed, gated and quantized once for all parts that take the same form;
/// each part is a product that writes its output, or what a gate or a residual makes of it.

#include <optional>

#include "backend/gpu/executor/matrix_product.h"
#include "backend/gpu/executor/recorder.h"

namespace hearth::backend::gpu {
namespace {

MatrixProduct product_of(const graph::MatMul& matmul, const Recorder& recorder) {
  return {.weight = matmul.weight,
          .n_out = recorder.host_weight(matmul.weight).tensor.shape[0],
          .bias = matmul.bias};
}

/// Two parts of which the first is the gate: it goes to memory of the launch, the second reads it.
Result<void> record_gated(const plan::Projection& projection, const MatrixInput& input,
                          Recorder& recorder) {
  MatrixProduct gate = product_of(projection.parts[0].matmul, recorder);
  gate.y = recorder.scratch(recorder.rows(projection.input) * gate.n_out * 4);
  HEARTH_TRY(gate.record(input, recorder));
  recorder.barrier();
  MatrixProduct up = product_of(projection.parts[1].matmul, recorder);
  up.gate = {PRODUCT_ELEMENT_GATE, *projection.gate, gate.y};
  up.residual = projection.residual;
  up.y = recorder.value(projection.output);
  return up.record(input, recorder);
}

}  // namespace

Result<void> record_projection(const plan::Projection& projection, Recorder& recorder) {
  MatrixInput input(projection.input, projection.norm, projection.input_gate);
  for (const auto& part : projection.parts) {
    input.prepare_for(part.matmul.weight, recorder);
  }
  recorder.barrier();
  if (projection.gate) {
    return record_gated(projection, input, recorder);
  }
  for (const auto& part : projection.parts) {
    MatrixProduct product = product_of(part.matmul, recorder);
    if (projection.row_gate) {
      product.gate = {PRODUCT_ROW_GATE, projection.row_gate->kind,
                      recorder.value(projection.row_gate->value)};
    }
    product.residual = projection.residual;
    product.y = recorder.value(projection.has_one_output() ? projection.output : part.output);
    HEARTH_TRY(product.record(input, recorder));
  }
  return {};
}

}  // namespace hearth::backend::gpu
