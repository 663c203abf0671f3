/// Projection: activations are normed, gated and quantized once, then the threads share out panels
/// of the output rows of every part. With few rows each thread prepares the activations for itself,
/// which is cheaper than a barrier.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/carver.h"
#include "backend/cpu/launch_kernel.h"
#include "base/checked.h"
#include "base/fail.h"
#include "quant/integer_form.h"
#include "quant/registry.h"

namespace hearth::backend::cpu {
namespace {

struct Part {
  DType dtype;
  WeightMatrix weights;
  std::int64_t row_bytes;
  std::int64_t n_out;
  const float* bias;     // or null
  int activation_block;  // 0: float activations
  ValueRef output;
};

/// All forms of the activations that the parts of one projection need.
struct Prepared {
  float* values = nullptr;                 // [rows, n_in], null without norm and input gate
  std::array<ActivationStep*, 2> steps{};  // by code_blocks, [n_in / 256, rounded up][rows]
};

/// Some columns of a value that multiply others once they are activated.
struct BoundGate {
  BoundGate(const plan::Gate& gate, const BindContext& context)
      : kind(gate.kind),
        value(context.values, gate.value),
        columns(gate.columns.value_or(
            graph::ColumnPattern{value.desc.features, 0, value.desc.features})) {}

  graph::ActivationKind kind;
  ValueRef value;
  graph::ColumnPattern columns;
};

class ProjectionKernel final : public LaunchKernel {
 public:
  ProjectionKernel(const plan::Projection& projection, const BindContext& context,
                   std::vector<Part> parts)
      : kernels_(context.kernels),
        input_(context.values, projection.input),
        parts_(std::move(parts)),
        gate_(projection.gate) {
    if (projection.norm) {
      norm_weight_ = graph::f32_data(context.weights, projection.norm->weight);
      norm_length_ = graph::tensor(context.weights, projection.norm->weight).shape.back();
      norm_eps_ = projection.norm->eps;
    }
    if (projection.input_gate) {
      input_gate_.emplace(*projection.input_gate, context);
    }
    if (projection.row_gate) {
      row_gate_.emplace(*projection.row_gate, context);
    }
    if (projection.has_one_output()) {
      output_ = ValueRef(context.values, projection.output);
    }
    if (projection.residual) {
      residual_ = ValueRef(context.values, *projection.residual);
    }
    for (std::size_t form = 0; form < code_blocks.size(); ++form) {
      needs_steps_[form] = std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
        return part.activation_block == code_blocks[form];
      });
    }
    for (const auto& part : parts_) {
      matmul_bytes_ =
          std::max(matmul_bytes_, matmul_scratch_bytes(part.row_bytes, n_in(), input_.desc.rows));
    }
  }

  void run(const Worker& worker, const RunContext& run) const override {
    const std::int64_t n_rows = input_.rows(run.step);
    if (n_rows == 0) {  // a prompt chunk whose rows want no logits: leave the head alone
      return;
    }
    const bool private_rows = n_rows <= max_private_rows;
    Carver own(run.scratch_of(worker));
    auto* matmul_scratch = own.take<std::byte>(matmul_bytes_);
    auto* tile = own.take<float>(tile_floats());
    Carver shared(run.shared_scratch);
    Carver& store = private_rows ? own : shared;
    const Prepared prepared = carve(store, private_rows ? max_private_rows : input_.desc.rows);

    const auto share = private_rows ? Worker::Range{0, n_rows} : worker.share(n_rows);
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      prepare_row(run, prepared, row, n_rows);
    }
    if (!private_rows) {
      worker.wait_for_all();
    }
    if (gate_) {
      const std::int64_t bytes = parts_[0].row_bytes + parts_[1].row_bytes;
      worker.share_out(
          1,
          [&](std::int64_t) {
            return panel_pieces(kernels_, worker, parts_[0].n_out, bytes, n_rows);
          },
          [&](std::int64_t, std::int64_t begin, std::int64_t end) {
            const auto rows = rows_of_panels(begin, end, parts_[0].n_out);
            run_gated(rows, run, prepared, n_rows, matmul_scratch, tile);
          });
      return;
    }
    const auto part_at = [&](std::int64_t i) -> const Part& {
      return parts_[static_cast<std::size_t>(i)];
    };
    worker.share_out(
        std::ssize(parts_),
        [&](std::int64_t i) {
          return panel_pieces(kernels_, worker, part_at(i).n_out, part_at(i).row_bytes, n_rows);
        },
        [&](std::int64_t i, std::int64_t begin, std::int64_t end) {
          const auto rows = rows_of_panels(begin, end, part_at(i).n_out);
          run_part(rows, run, prepared, n_rows, part_at(i), matmul_scratch);
        });
  }

  [[nodiscard]] std::int64_t shared_bytes() const override {
    Carver measure(nullptr);
    carve(measure, input_.desc.rows);
    return measure.used();
  }

  [[nodiscard]] std::int64_t private_bytes() const override {
    Carver measure(nullptr);
    measure.take<std::byte>(matmul_bytes_);
    measure.take<float>(tile_floats());
    carve(measure, max_private_rows);
    return measure.used();
  }

 private:
  [[nodiscard]] std::int64_t n_in() const { return input_.desc.features; }
  /// What the gate multiplies, for as many weight rows as go together.
  [[nodiscard]] std::int64_t tile_floats() const {
    return gate_ ? kernels_.panels_together * panel_rows * input_.desc.rows : 0;
  }
  /// Whether what is multiplied is not the input as it is.
  [[nodiscard]] bool changes_values() const { return norm_weight_ != nullptr || input_gate_; }

  Prepared carve(Carver& carver, std::int64_t rows) const {
    Prepared prepared;
    if (changes_values()) {
      prepared.values = carver.take<float>(rows * n_in());
    }
    for (std::size_t form = 0; form < code_blocks.size(); ++form) {
      if (needs_steps_[form]) {
        prepared.steps[form] =
            carver.take<ActivationStep>(rows * ceil_div(n_in(), step_weights) + step_slack);
      }
    }
    return prepared;
  }

  void prepare_row(const RunContext& run, const Prepared& prepared, std::int64_t row,
                   std::int64_t n_rows) const {
    const float* x = input_.data(run) + row * n_in();
    float* values = changes_values() ? prepared.values + row * n_in() : nullptr;
    if (norm_weight_ != nullptr) {
      for (std::int64_t at = 0; at < n_in(); at += norm_length_) {
        kernels_.rms_norm(x + at, norm_weight_, norm_length_, norm_eps_, values + at);
      }
      x = values;
    }
    if (input_gate_) {
      const auto& columns = input_gate_->columns;
      const float* gate =
          input_gate_->value.data(run) + row * input_gate_->value.desc.features + columns.start;
      for (std::int64_t at = 0; at < n_in(); at += columns.width, gate += columns.period) {
        kernels_.gate(input_gate_->kind, gate, x + at, columns.width, values + at);
      }
      x = values;
    }
    for (std::size_t form = 0; form < code_blocks.size(); ++form) {
      if (needs_steps_[form]) {
        kernels_.quantize(x, n_in(), code_blocks[form], prepared.steps[form] + row, n_rows);
      }
    }
  }

  [[nodiscard]] ActivationRows activations(const RunContext& run, const Prepared& prepared,
                                           const Part& part) const {
    if (part.activation_block == 0) {
      return {.values = changes_values() ? prepared.values : input_.data(run)};
    }
    return {.steps = prepared.steps[part.activation_block == code_blocks[0] ? 0 : 1]};
  }

  /// Weight rows [begin, begin + n) of `part` into out [n_rows, ...].
  void multiply(const RunContext& run, const Prepared& prepared, std::int64_t n_rows,
                const Part& part, std::int64_t begin, std::int64_t n, float* out,
                std::int64_t stride, std::byte* scratch) const {
    const auto kernel = kernels_.matmul_for(part.dtype, n_rows);
    kernel({.weights = part.weights.data + begin * part.row_bytes,
            .weight_row_bytes = part.row_bytes,
            .is_tiled = part.weights.is_tiled,
            .n_in = n_in(),
            .n_out = n,
            .x = activations(run, prepared, part),
            .n_rows = n_rows,
            .out = out,
            .out_stride = stride,
            .scratch = scratch});
    if (part.bias != nullptr) {
      for (std::int64_t row = 0; row < n_rows; ++row) {
        for (std::int64_t o = 0; o < n; ++o) {
          out[row * stride + o] += part.bias[begin + o];
        }
      }
    }
  }

  /// Weight rows of some panels: all of each, save for the last.
  static Worker::Range rows_of_panels(std::int64_t begin, std::int64_t end, std::int64_t n_out) {
    return {begin * panel_rows, std::min(end * panel_rows, n_out)};
  }

  void run_part(const Worker::Range& rows, const RunContext& run, const Prepared& prepared,
                std::int64_t n_rows, const Part& part, std::byte* scratch) const {
    float* out = (residual_ || row_gate_ ? output_ : part.output).data(run) + rows.begin;
    multiply(run, prepared, n_rows, part, rows.begin, rows.end - rows.begin, out, part.n_out,
             scratch);
    if (row_gate_) {
      for (std::int64_t row = 0; row < n_rows; ++row) {
        const float factor = graph::activate(row_gate_->kind, row_gate_->value.data(run)[row]);
        for (std::int64_t o = 0; o < rows.end - rows.begin; ++o) {
          out[row * part.n_out + o] *= factor;
        }
      }
    }
    if (residual_) {
      const float* residual = residual_->data(run) + rows.begin;
      for (std::int64_t row = 0; row < n_rows; ++row) {
        for (std::int64_t o = 0; o < rows.end - rows.begin; ++o) {
          out[row * part.n_out + o] += residual[row * part.n_out + o];
        }
      }
    }
  }

  void run_gated(const Worker::Range& rows, const RunContext& run, const Prepared& prepared,
                 std::int64_t n_rows, std::byte* scratch, float* tile) const {
    const std::int64_t n_out = parts_[0].n_out;
    const std::int64_t most = weight_rows_together(kernels_, n_rows);
    for (std::int64_t begin = rows.begin; begin < rows.end; begin += most) {
      const std::int64_t n = std::min(most, rows.end - begin);
      float* out = output_.data(run) + begin;
      multiply(run, prepared, n_rows, parts_[0], begin, n, out, n_out, scratch);
      multiply(run, prepared, n_rows, parts_[1], begin, n, tile, n, scratch);
      for (std::int64_t row = 0; row < n_rows; ++row) {
        kernels_.gate(*gate_, out + row * n_out, tile + row * n, n, out + row * n_out);
      }
    }
  }

  const KernelSet& kernels_;
  ValueRef input_;
  const float* norm_weight_ = nullptr;  // [norm_length]
  std::int64_t norm_length_ = 0;        // divides n_in
  float norm_eps_ = 0;
  std::vector<Part> parts_;
  std::array<bool, 2> needs_steps_{};
  std::int64_t matmul_bytes_ = 0;
  std::optional<graph::ActivationKind> gate_;
  std::optional<BoundGate> input_gate_, row_gate_;
  std::optional<ValueRef> residual_;
  ValueRef output_;  // of a gate or residual
};

}  // namespace

Result<std::unique_ptr<LaunchKernel>> bind_projection(const plan::Projection& projection,
                                                      const BindContext& context) {
  std::vector<Part> parts;
  for (const auto& part : projection.parts) {
    const auto& weight = context.weights[graph::index(part.matmul.weight)];
    if (context.kernels.matmul_for(weight.tensor.dtype, 1) == nullptr) {
      return fail(ErrorCode::unsupported,
                  "tensor '{}': the CPU backend cannot multiply with type {}", weight.name,
                  quant::name(weight.tensor.dtype));
    }
    const auto* layout = quant::integer_layout(weight.tensor.dtype);
    HEARTH_ASSIGN(const auto matrix,
                  context.packed.matrix(part.matmul.weight, weight.tensor.shape[0]));
    parts.push_back(
        {.dtype = weight.tensor.dtype,
         .weights = matrix,
         .row_bytes = quant::row_bytes(weight.tensor.dtype, weight.tensor.shape.back()),
         .n_out = weight.tensor.shape[0],
         .bias = part.matmul.bias ? graph::f32_data(context.weights, *part.matmul.bias) : nullptr,
         .activation_block = layout != nullptr ? layout->activation_block : 0,
         .output =
             projection.has_one_output() ? ValueRef{} : ValueRef(context.values, part.output)});
  }
  return std::make_unique<ProjectionKernel>(projection, context, std::move(parts));
}

}  // namespace hearth::backend::cpu
