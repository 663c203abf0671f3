#include "backend/gpu/executor/few_rows.h"

#include <algorithm>
#include <bit>

#include "backend/gpu/kernels/projection.h"
#include "base/assert.h"
#include "base/checked.h"
#include "quant/registry.h"

namespace hearth::backend::gpu {
namespace {

/// With more rows, preparing the input once is worth a launch.
constexpr u32 max_capacity = 8;
constexpr u32 block_values = 256;
/// Lanes that share a row of a matrix, at most.
constexpr u32 max_lanes = 16;

/// Values of one row that a product reads.
u32 n_in(const MatrixProduct& product, const Recorder& recorder) {
  return static_cast<u32>(recorder.host_weight(product.weight).tensor.shape.back());
}

std::optional<KernelId> kernel_of(const MatrixProduct& product, const Recorder& recorder) {
  const auto kernel =
      kernel_for("projection_", recorder.host_weight(product.weight).tensor.dtype, "");
  return kernel ? std::optional(*kernel) : std::nullopt;
}

bool is_float_product(const MatrixProduct& product, const Recorder& recorder) {
  return recorder.host_weight(product.weight).tensor.dtype == DType::f32;
}

ProjectionParams params_for(std::span<const MatrixProduct> products, const MatrixInput& input,
                            const Recorder& recorder) {
  const MatrixProduct& first = products.front();
  ProjectionParams params{.input = input.input_params(recorder), .group_rows = 1};
  const u32 n = n_in(first, recorder);
  const u32 n_blocks = n / block_values;
  const bool is_float = is_float_product(first, recorder);
  if (params.input.n != n) {  // a row for each slot
    params.input.n = n;
    params.input.period = n;
    params.input.width = n;
  }
  params.input.block = block_values;
  params.lanes = is_float ? 1 : std::min(max_lanes, std::bit_ceil(n_blocks));
  for (std::size_t i = 0; i < products.size(); ++i) {
    params.n_out[i] = static_cast<u32>(products[i].n_out);
  }
  if (first.experts) {
    params.n_used = recorder.features(first.experts->routing) / 2;
    params.expert_rows = static_cast<u32>(recorder.host_weight(first.weight).tensor.shape[1]);
    params.first_row[0] = static_cast<u32>(first.experts->first_row);
    params.has_x_per_slot = first.experts->has_x_per_slot ? 1 : 0;
  } else if (is_float) {
    params.group_rows = std::min<u32>(PROJECTION_FLOAT_ROWS, PROJECTION_FLOATS / n);
  } else {
    params.group_rows = std::min<u32>(PROJECTION_MAX_ROWS, PROJECTION_BLOCKS / n_blocks);
  }
  if (first.gate.kind == PRODUCT_ROW_GATE) {
    params.has_row_gate = 1;
    params.row_activation = static_cast<u32>(first.gate.activation);
  }
  params.has_residual = first.residual ? 1 : 0;
  return params;
}

/// Threadgroups that the rows of the first n matrices take.
std::int64_t groups_for(const MatrixProduct& first, const ProjectionParams& params, std::size_t n,
                        const Recorder& recorder) {
  std::int64_t n_rows = 0;
  std::int64_t n_float_groups = 0;
  for (std::size_t i = 0; i < n; ++i) {
    n_rows += params.n_out[i];
    n_float_groups += ceil_div(params.n_out[i], PROJECTION_FLOAT_OUTPUTS);
  }
  return is_float_product(first, recorder)
             ? n_float_groups
             : ceil_div(n_rows, PROJECTION_SIMDGROUPS * (32 / params.lanes));
}

/// `products` in the order of the kernel's weights, which write `outputs` of them.
void dispatch(std::span<const MatrixProduct> products, const std::vector<BufferPart>& outputs,
              const ProjectionParams& params, const MatrixInput& input, Recorder& recorder) {
  const MatrixProduct& first = products.front();
  std::vector<BufferPart> buffers{recorder.step().counts, recorder.value(input.value()),
                                  input.norm_buffer(recorder)};
  if (!is_float_product(first, recorder)) {
    buffers.push_back(input.gate_buffer(recorder));
    buffers.push_back(first.experts ? recorder.value(first.experts->routing) : recorder.absent());
  }
  buffers.push_back(first.gate.kind == PRODUCT_ROW_GATE ? first.gate.value : recorder.absent());
  buffers.push_back(first.residual ? recorder.value(*first.residual) : recorder.absent());
  for (std::size_t i = 0; i < PROJECTION_PARTS; ++i) {
    buffers.push_back(i < products.size() ? recorder.weight(products[i].weight)
                                          : recorder.absent());
  }
  for (std::size_t i = 0; i < PROJECTION_PARTS; ++i) {
    buffers.push_back(i < outputs.size() ? outputs[i] : recorder.scratch(sizeof(float)));
  }
  recorder.dispatch(*kernel_of(first, recorder), std::move(buffers), params,
                    {static_cast<u32>(groups_for(first, params, outputs.size(), recorder)),
                     std::max(params.n_used, 1u),
                     static_cast<u32>(ceil_div(recorder.rows(input.value()), params.group_rows))},
                    PROJECTION_THREADS);
}

}  // namespace

bool takes_few_rows(const MatrixProduct& product, const MatrixInput& input,
                    const Recorder& recorder) {
  if (recorder.rows(input.value()) > max_capacity || product.bias ||
      product.gate.kind == PRODUCT_ELEMENT_GATE || !kernel_of(product, recorder)) {
    return false;
  }
  const InputParams params = input.input_params(recorder);
  const u32 n = n_in(product, recorder);
  if (is_float_product(product, recorder)) {
    return n <= PROJECTION_FLOATS && !product.experts && params.has_gate == 0 &&
           (params.norm_run == 0 || params.norm_run == n);
  }
  return n <= PROJECTION_BLOCKS * block_values &&
         (params.norm_run == 0 || params.n / params.norm_run <= PROJECTION_MAX_RUNS);
}

void record_few_rows(std::span<const MatrixProduct> products, const MatrixInput& input,
                     Recorder& recorder) {
  HEARTH_ASSERT(products.size() <= PROJECTION_PARTS);
  std::vector<BufferPart> outputs;
  for (const MatrixProduct& product : products) {
    outputs.push_back(product.y);
  }
  dispatch(products, std::move(outputs), params_for(products, input, recorder), input, recorder);
}

void record_few_rows_pair(const MatrixProduct& gate, const MatrixProduct& up,
                          graph::ActivationKind activation, const MatrixInput& input,
                          Recorder& recorder) {
  std::vector<MatrixProduct> products{gate, up};
  products.front().residual = up.residual;
  ProjectionParams params = params_for(products, input, recorder);
  params.is_pair = 1;
  params.activation = static_cast<u32>(activation);
  if (up.experts) {
    params.first_row[1] = static_cast<u32>(up.experts->first_row);
  }
  dispatch(products, {up.y}, params, input, recorder);
}

}  // namespace hearth::backend::gpu
