#include "backend/gpu/executor/few_rows.h"

#include <algorithm>

#include "backend/gpu/kernels/projection.h"
#include "base/assert.h"
#include "base/checked.h"

namespace hearth::backend::gpu {
namespace {

/// With more rows, preparing the input once is worth a launch.
constexpr u32 max_capacity = 8;

}  // namespace

bool takes_few_rows(const MatrixProduct& product, const MatrixInput& input,
                    const Recorder& recorder) {
  if (recorder.host_weight(product.weight).tensor.dtype != DType::f32 || product.experts ||
      product.bias || product.gate.kind == PRODUCT_ELEMENT_GATE ||
      recorder.rows(input.value()) > max_capacity) {
    return false;
  }
  const InputParams params = input.input_params(recorder);
  return params.n <= PROJECTION_FLOATS && params.has_gate == 0 &&
         (params.norm_run == 0 || params.norm_run == params.n);
}

void record_few_rows(std::span<const MatrixProduct> products, const MatrixInput& input,
                     Recorder& recorder) {
  HEARTH_ASSERT(products.size() <= PROJECTION_PARTS);
  const MatrixProduct& first = products.front();
  ProjectionParams params{.input = input.input_params(recorder)};
  params.group_rows = std::min<u32>(PROJECTION_ROWS, PROJECTION_FLOATS / params.input.n);
  params.has_row_gate = first.gate.kind == PRODUCT_ROW_GATE ? 1 : 0;
  params.row_activation = static_cast<u32>(first.gate.activation);
  params.has_residual = first.residual ? 1 : 0;
  std::vector<BufferPart> buffers{
      recorder.step().counts, recorder.value(input.value()), input.norm_buffer(recorder),
      params.has_row_gate != 0 ? first.gate.value : recorder.absent(),
      first.residual ? recorder.value(*first.residual) : recorder.absent()};
  std::int64_t n_groups = 0;
  for (std::size_t i = 0; i < PROJECTION_PARTS; ++i) {
    buffers.push_back(i < products.size() ? recorder.weight(products[i].weight)
                                          : recorder.absent());
  }
  for (std::size_t i = 0; i < PROJECTION_PARTS; ++i) {
    if (i < products.size()) {
      params.n_out[i] = static_cast<u32>(products[i].n_out);
      n_groups += ceil_div(products[i].n_out, PROJECTION_OUTPUTS);
    }
    buffers.push_back(i < products.size() ? products[i].y : recorder.scratch(sizeof(float)));
  }
  recorder.dispatch(KernelId::projection_f32, std::move(buffers), params,
                    {static_cast<u32>(n_groups), 1,
                     static_cast<u32>(ceil_div(recorder.rows(input.value()), params.group_rows))},
                    PROJECTION_THREADS);
}

}  // namespace hearth::backend::gpu
