#include "backend/gpu/executor/matrix_input.h"

#include "backend/gpu/kernels/input.h"
#include "base/checked.h"
#include "quant/activation.h"
#include "quant/registry.h"

namespace hearth::backend::gpu {
namespace {

/// Values that share a scale, 0 for matrices that are multiplied as floats.
std::int64_t activation_block(graph::WeightId matrix, const Recorder& recorder) {
  const auto* layout = quant::integer_layout(recorder.host_weight(matrix).tensor.dtype);
  return layout == nullptr ? 0 : layout->activation_block;
}

InputParams input_params(const Recorder& recorder, graph::ValueId value,
                         const std::optional<graph::RmsNorm>& norm,
                         const std::optional<plan::Gate>& gate) {
  const u32 n = recorder.features(value);
  InputParams params{.axis = recorder.axis(value), .n = n, .period = n, .width = n};
  if (norm) {
    params.norm_run = static_cast<u32>(recorder.host_weight(norm->weight).tensor.shape.back());
    params.eps = norm->eps;
  }
  if (gate) {
    params.has_gate = 1;
    params.activation = static_cast<u32>(gate->kind);
    params.gate_stride = recorder.features(gate->value);
    if (gate->columns) {
      params.period = static_cast<u32>(gate->columns->period);
      params.start = static_cast<u32>(gate->columns->start);
      params.width = static_cast<u32>(gate->columns->width);
    }
  }
  return params;
}

}  // namespace

void MatrixInput::prepare_for(graph::WeightId matrix, Recorder& recorder) {
  const std::int64_t block = activation_block(matrix, recorder);
  auto [entry, is_new] = forms_.try_emplace(block);
  if (!is_new) {
    return;
  }
  auto& form = entry->second;
  if (block == 0 && !norm_ && !gate_) {
    form = {recorder.value(value_)};
    return;
  }
  InputParams params = input_params(recorder, value_, norm_, gate_);
  params.block = static_cast<u32>(block);
  const std::int64_t n_values = std::int64_t{recorder.rows(value_)} * params.n;
  if (block == 0) {
    form = {recorder.scratch(n_values * 4)};
  } else {
    form = {recorder.scratch(n_values), recorder.scratch(n_values / block * 4),
            recorder.scratch(n_values / quant::activation_sum_group * 2)};
  }
  std::vector<BufferPart> buffers{recorder.step().counts, recorder.value(value_),
                                  norm_ ? recorder.weight(norm_->weight) : recorder.absent(),
                                  gate_ ? recorder.value(gate_->value) : recorder.absent()};
  buffers.insert(buffers.end(), form.begin(), form.end());
  recorder.dispatch(
      block == 0 ? KernelId::float_input : KernelId::quantize_input, std::move(buffers), params,
      {static_cast<u32>(ceil_div(params.n, INPUT_GROUP_VALUES)), recorder.rows(value_)},
      INPUT_THREADS);
}

const std::vector<BufferPart>& MatrixInput::buffers(graph::WeightId matrix,
                                                    const Recorder& recorder) const {
  return forms_.at(activation_block(matrix, recorder));
}

}  // namespace hearth::backend::gpu
