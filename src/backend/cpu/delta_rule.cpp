/// DeltaRule: threads share out strips of 16 columns of the heads' memories, which know nothing of
/// each other, and take the rows in order. A strip stays in the first-level cache while a few rows
/// pass; what those rows need of a head is worked out once for all its strips.

#include <algorithm>
#include <cmath>

#include "backend/cpu/carver.h"
#include "backend/cpu/launch_kernel.h"

namespace hearth::backend::cpu {
namespace {

constexpr std::int64_t rows_at_once = 16;  // their keys and queries fit the first-level cache

/// What one row brings to one head, but its value.
struct HeadInputs {
  float* q;  // [key_dim]
  float* k;
  float decay;
  float beta;
};

class DeltaRuleKernel final : public LaunchKernel {
 public:
  DeltaRuleKernel(const plan::OpLaunch& launch, const BindContext& context)
      : kernels_(context.kernels),
        params_(std::get<graph::DeltaRule>(launch.op).params),
        query_scale_(1.0f / std::sqrt(static_cast<float>(params_.key_dim))),
        rate_(graph::f32_data(context.weights, std::get<graph::DeltaRule>(launch.op).rate)),
        bias_(graph::f32_data(context.weights, std::get<graph::DeltaRule>(launch.op).bias)),
        qkv_(context.values, launch.inputs[0]),
        write_gate_(context.values, launch.inputs[1]),
        decay_gate_(context.values, launch.inputs[2]),
        output_(context.values, launch.output) {}

  void run(const Worker& worker, const RunContext& run) const override {
    Carver scratch(run.scratch_of(worker));
    std::array<HeadInputs, rows_at_once> inputs;
    for (auto& each : inputs) {
      each.q = scratch.take<float>(params_.key_dim);
      each.k = scratch.take<float>(params_.key_dim);
    }
    const Pieces strips{params_.n_value_heads * strips_per_head(), strips_per_head()};
    worker.share_out(
        1, [&](std::int64_t) { return strips; },
        [&](std::int64_t, std::int64_t begin, std::int64_t end) {
          run_strips(run, begin, end, inputs);
        });
  }

  [[nodiscard]] std::int64_t private_bytes() const override {
    Carver measure(nullptr);
    for (std::int64_t i = 0; i < 2 * rows_at_once; ++i) {
      measure.take<float>(params_.key_dim);
    }
    return measure.used();
  }

 private:
  /// Strips [first, end) of one head.
  struct Strips {
    std::int64_t head;
    std::int64_t first;
    std::int64_t end;
  };

  [[nodiscard]] std::int64_t strips_per_head() const {
    return params_.value_dim / graph::state_strip;
  }

  /// Strips [begin, end) of all heads.
  void run_strips(const RunContext& run, std::int64_t begin, std::int64_t end,
                  std::array<HeadInputs, rows_at_once>& inputs) const {
    for (std::int64_t strip = begin; strip < end;) {
      const std::int64_t head = strip / strips_per_head();
      const std::int64_t stop = std::min(end, (head + 1) * strips_per_head());
      const Strips strips{head, strip % strips_per_head(), stop - head * strips_per_head()};
      for (std::int64_t row = 0; row < qkv_.rows(run.step); row += rows_at_once) {
        run_rows(run, strips, row, inputs);
      }
      strip = stop;
    }
  }

  void run_rows(const RunContext& run, const Strips& strips, std::int64_t first_row,
                std::array<HeadInputs, rows_at_once>& inputs) const {
    const std::int64_t n_rows = std::min(rows_at_once, qkv_.rows(run.step) - first_row);
    for (std::int64_t i = 0; i < n_rows; ++i) {
      prepare(run, strips.head, first_row + i, inputs[static_cast<std::size_t>(i)]);
    }
    for (std::int64_t i = 0; i < n_rows;) {
      std::int64_t n = 1;
      while (i + n < n_rows && continues(run.step, first_row + i + n)) {
        ++n;
      }
      for (std::int64_t strip = strips.first; strip < strips.end; ++strip) {
        steps(run, strips.head, strip, {first_row + i, first_row + i + n}, &inputs[index_of(i)]);
      }
      i += n;
    }
  }

  /// Whether a row finds the state in the place where the row before it left it.
  static bool continues(const graph::StepView& step, std::int64_t row) {
    return step.positions[index_of(row)] != 0 && step.state_before(row) == step.state_after(row) &&
           step.state_after(row) == step.state_after(row - 1);
  }
  static std::size_t index_of(std::int64_t i) { return static_cast<std::size_t>(i); }

  void prepare(const RunContext& run, std::int64_t head, std::int64_t row,
               HeadInputs& inputs) const {
    const float* q =
        qkv_.data(run) + row * qkv_.desc.features + params_.key_head(head) * params_.key_dim;
    kernels_.unit_vector(q, params_.key_dim, query_scale_, inputs.q);
    kernels_.unit_vector(q + params_.key_features(), params_.key_dim, 1.0f, inputs.k);
    const std::int64_t at = row * params_.n_value_heads + head;
    inputs.decay = graph::decay_of(rate_[head], bias_[head], decay_gate_.data(run)[at]);
    inputs.beta = canonical_sigmoid(write_gate_.data(run)[at]);
  }

  /// `inputs` of rows that continue each other.
  void steps(const RunContext& run, std::int64_t head, std::int64_t strip,
             const Worker::Range& rows, const HeadInputs* inputs) const {
    const std::int64_t column = head * params_.value_dim + strip * graph::state_strip;
    std::array<DeltaToken, rows_at_once> tokens;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const HeadInputs& from = inputs[row - rows.begin];
      tokens[index_of(row - rows.begin)] = {
          .q = from.q,
          .k = from.k,
          .v = qkv_.data(run) + row * qkv_.desc.features + 2 * params_.key_features() + column,
          .decay = from.decay,
          .beta = from.beta,
          .out = output_.data(run) + row * output_.desc.features + column};
    }
    kernels_.delta({.memory = run.states.memory_for(run.step, rows.begin, params_.layer,
                                                    column * params_.key_dim,
                                                    params_.key_dim * graph::state_strip),
                    .key_dim = params_.key_dim,
                    .tokens = tokens.data(),
                    .n_tokens = rows.end - rows.begin});
  }

  const KernelSet& kernels_;
  graph::DeltaRuleParams params_;
  float query_scale_;
  const float* rate_;  // [n_value_heads]
  const float* bias_;
  ValueRef qkv_, write_gate_, decay_gate_, output_;
};

}  // namespace

std::unique_ptr<LaunchKernel> bind_delta_rule(const plan::OpLaunch& launch,
                                              const BindContext& context) {
  return std::make_unique<DeltaRuleKernel>(launch, context);
}

}  // namespace hearth::backend::cpu
