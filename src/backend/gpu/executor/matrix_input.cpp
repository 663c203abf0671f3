#include "backend/gpu/executor/matrix_input.h"

#include <functional>
#include <set>

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

void MatrixInput::prepare_for(std::span<const graph::WeightId> matrices, Recorder& recorder) {
  std::set<std::int64_t, std::greater<>> blocks;  // floats last
  for (const auto matrix : matrices) {
    blocks.insert(activation_block(matrix, recorder));
  }
  for (const std::int64_t block : blocks) {
    prepare(block, blocks.contains(0), recorder);
  }
}

BufferPart MatrixInput::floats(Recorder& recorder) {
  prepare(0, /*wants_floats=*/true, recorder);
  return forms_.at(0).front();
}

void MatrixInput::prepare(std::int64_t block, bool wants_floats, Recorder& recorder) {
  if (forms_.contains(block)) {
    return;
  }
  if (block == 0 && !norm_ && !gate_) {
    forms_[0] = {recorder.value(value_)};
    return;
  }
  InputParams params = input_params(recorder);
  params.block = static_cast<u32>(block);
  const std::int64_t n_values = std::int64_t{recorder.rows(value_)} * params.n;
  std::vector<BufferPart> buffers{recorder.step().counts, recorder.value(value_),
                                  norm_ ? recorder.weight(norm_->weight) : recorder.absent(),
                                  gate_ ? recorder.value(gate_->value) : recorder.absent()};
  const auto floats_of = [&](bool is_there) {
    return recorder.scratch(is_there ? n_values * 4 : 4);
  };
  const auto codes_of = [&](bool is_there) {
    return is_there
               ? std::vector{recorder.scratch(n_values), recorder.scratch(n_values / block * 4),
                             recorder.scratch(n_values / quant::activation_sum_group * 2)}
               : std::vector{recorder.scratch(4), recorder.scratch(4), recorder.scratch(4)};
  };
  if (params.norm_run == params.n && recorder.rows(value_) >= min_prompt_rows) {
    const bool has_codes = block != 0;
    const bool has_floats = wants_floats && !forms_.contains(0);
    const std::vector<BufferPart> codes = codes_of(has_codes);
    const BufferPart floats = floats_of(has_floats);
    buffers.insert(buffers.end(), codes.begin(), codes.end());
    buffers.push_back(floats);
    recorder.dispatch(KernelId::input_rows, std::move(buffers),
                      InputRowsParams{params, has_codes ? 1u : 0u, has_floats ? 1u : 0u},
                      {static_cast<u32>(ceil_div(recorder.rows(value_), INPUT_ROWS_THREADS / 32))},
                      INPUT_ROWS_THREADS);
    if (has_codes) {
      forms_[block] = codes;
    }
    if (has_floats) {
      forms_[0] = {floats};
    }
    return;
  }
  auto& form = forms_[block];
  form = block == 0 ? std::vector{floats_of(true)} : codes_of(true);
  buffers.insert(buffers.end(), form.begin(), form.end());
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
