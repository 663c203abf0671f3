#include "backend/gpu/executor/matrix_input.h"

#include "backend/gpu/kernels/columns.h"
#include "base/assert.h"
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

}  // namespace

InputParams MatrixInput::input_params(const Recorder& recorder) const {
  const u32 n = recorder.features(value_);
  InputParams params{.axis = recorder.axis(value_), .n = n, .period = n, .width = n};
  if (norm_) {
    params.norm_run = static_cast<u32>(recorder.host_weight(norm_->weight).tensor.shape.back());
    params.eps = norm_->eps;
  }
  if (gate_) {
    params.has_gate = 1;
    params.activation = static_cast<u32>(gate_->kind);
    params.gate_stride = recorder.features(gate_->value);
    if (gate_->columns) {
      params.period = static_cast<u32>(gate_->columns->period);
      params.start = static_cast<u32>(gate_->columns->start);
      params.width = static_cast<u32>(gate_->columns->width);
    }
  }
  return params;
}

const graph::RmsNorm* MatrixInput::row_norm(const Recorder& recorder) const {
  const bool is_of_rows =
      norm_ && recorder.host_weight(norm_->weight).tensor.shape.back() == recorder.features(value_);
  return is_of_rows && !gate_ ? &*norm_ : nullptr;
}

void MatrixInput::prepare_for(graph::WeightId matrix, Recorder& recorder) {
  prepare(activation_block(matrix, recorder), recorder);
}

BufferPart MatrixInput::floats(Recorder& recorder) {
  prepare(0, recorder);
  return forms_.at(0).front();
}

void MatrixInput::prepare(std::int64_t block, Recorder& recorder) {
  auto [entry, is_new] = forms_.try_emplace(block);
  if (!is_new) {
    return;
  }
  auto& form = entry->second;
  if (block == 0 && !norm_ && !gate_) {
    form = {recorder.value(value_)};
    return;
  }
  InputParams params = input_params(recorder);
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
  if (params.norm_run == params.n && recorder.rows(value_) >= min_prompt_rows) {
    recorder.dispatch(block == 0 ? KernelId::float_rows : KernelId::quantize_rows,
                      std::move(buffers), params,
                      {static_cast<u32>(ceil_div(recorder.rows(value_), INPUT_ROWS_THREADS / 32))},
                      INPUT_ROWS_THREADS);
    return;
  }
  recorder.dispatch(
      block == 0 ? KernelId::float_input : KernelId::quantize_input, std::move(buffers), params,
      {static_cast<u32>(ceil_div(params.n, INPUT_GROUP_VALUES)), recorder.rows(value_)},
      INPUT_THREADS);
}

void MatrixInput::prepare_columns(bool with_floats, Recorder& recorder) {
  const bool is_changed = norm_ || gate_;
  if (with_floats && !is_changed) {
    forms_.try_emplace(0, std::vector{recorder.value(value_)});
  }
  if (!columns_.empty()) {
    HEARTH_ASSERT(!with_floats || forms_.contains(0));
    return;
  }
  ColumnInputParams params{.input = input_params(recorder),
                           .has_floats = with_floats && is_changed ? 1u : 0u};
  constexpr std::int64_t block = 256;
  params.input.block = static_cast<u32>(block);
  const std::int64_t n_blocks = std::int64_t{recorder.rows(value_)} * params.input.n / block;
  columns_ = {recorder.scratch(n_blocks * block), recorder.scratch(n_blocks * STRIP_DIGIT_BYTES),
              recorder.scratch(n_blocks * 4)};
  const BufferPart floats = recorder.scratch(params.has_floats != 0 ? n_blocks * block * 4 : 4);
  if (params.has_floats != 0) {
    forms_.try_emplace(0, std::vector{floats});
  }
  recorder.dispatch(
      KernelId::column_input,
      {recorder.step().counts, recorder.value(value_),
       norm_ ? recorder.weight(norm_->weight) : recorder.absent(),
       gate_ ? recorder.value(gate_->value) : recorder.absent(), columns_[0], columns_[1],
       columns_[2], floats},
      params,
      {static_cast<u32>(ceil_div(params.input.n, INPUT_GROUP_VALUES)), recorder.rows(value_)},
      INPUT_THREADS);
}

const std::vector<BufferPart>& MatrixInput::buffers(graph::WeightId matrix,
                                                    const Recorder& recorder) const {
  return forms_.at(activation_block(matrix, recorder));
}

}  // namespace hearth::backend::gpu
