/// Launches without weights to stream: NormAdd and Router share out rows; any other single op runs
/// its reference kernel.

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "backend/cpu/launch_kernel.h"

namespace hearth::backend::cpu {
namespace {

class NormAddKernel final : public LaunchKernel {
 public:
  NormAddKernel(const plan::NormAdd& add, const BindContext& context)
      : kernels_(context.kernels),
        input_(context.values, add.input),
        residual_(context.values, add.residual),
        output_(context.values, add.output),
        weight_(graph::f32_data(context.weights, add.norm.weight)),
        length_(context.weights[graph::index(add.norm.weight)].tensor.shape.back()),
        eps_(add.norm.eps) {}

  void run(const Worker& worker, const RunContext& run) const override {
    const std::int64_t n = input_.desc.features;
    const auto share = worker.share(input_.rows(run.step));
    for (std::int64_t at = share.begin * n; at < share.end * n; at += length_) {
      float* out = output_.data(run) + at;
      kernels_.rms_norm(input_.data(run) + at, weight_, length_, eps_, out);
      const float* residual = residual_.data(run) + at;
      for (std::int64_t i = 0; i < length_; ++i) {
        out[i] += residual[i];
      }
    }
  }

 private:
  const KernelSet& kernels_;
  ValueRef input_, residual_, output_;
  const float* weight_;  // [length]
  std::int64_t length_;
  float eps_;
};

class RouterKernel final : public LaunchKernel {
 public:
  RouterKernel(const plan::OpLaunch& launch, const BindContext& context)
      : kernels_(context.kernels),
        n_used_(std::get<graph::Router>(launch.op).n_used),
        logits_(context.values, launch.inputs.front()),
        output_(context.values, launch.output) {}

  void run(const Worker& worker, const RunContext& run) const override {
    const std::int64_t n_experts = logits_.desc.features;
    auto* probabilities = as_array<float>(run.scratch_of(worker));
    const auto share = worker.share(logits_.rows(run.step));
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      kernels_.route(logits_.data(run) + row * n_experts, n_experts, n_used_, probabilities,
                     output_.data(run) + row * output_.desc.features);
    }
  }

  [[nodiscard]] std::int64_t private_bytes() const override {
    return logits_.desc.features * static_cast<std::int64_t>(sizeof(float));
  }

 private:
  const KernelSet& kernels_;
  std::int64_t n_used_;
  ValueRef logits_, output_;
};

/// Any op, by its definition, on one thread.
class OpKernel final : public LaunchKernel {
 public:
  OpKernel(const plan::OpLaunch& launch, const BindContext& context)
      : op_(launch.op), weights_(context.weights), output_(context.values, launch.output) {
    for (const auto input : launch.inputs) {
      inputs_.emplace_back(context.values, input);
    }
  }

  void run(const Worker& worker, const RunContext& run) const override {
    if (worker.index != 0) {
      return;
    }
    const graph::OpContext context{weights_, run.step, run.kv, run.states, run.rows};
    std::array<graph::ConstRows, max_inputs> inputs{};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs[i] = {inputs_[i].data(run), inputs_[i].rows(run.step), inputs_[i].desc.features};
    }
    const graph::Rows out{output_.data(run), output_.rows(run.step), output_.desc.features};
    std::visit(
        [&](const auto& op) { op.run(context, std::span(inputs).first(inputs_.size()), out); },
        op_);
  }

 private:
  static constexpr std::size_t max_inputs = 3;  // attention: q, k, v

  graph::AnyOp op_;
  const graph::WeightTable& weights_;
  std::vector<ValueRef> inputs_;
  ValueRef output_;
};

}  // namespace

std::unique_ptr<LaunchKernel> bind_norm_add(const plan::NormAdd& add, const BindContext& context) {
  return std::make_unique<NormAddKernel>(add, context);
}

std::unique_ptr<LaunchKernel> bind_router(const plan::OpLaunch& launch,
                                          const BindContext& context) {
  return std::make_unique<RouterKernel>(launch, context);
}

std::unique_ptr<LaunchKernel> bind_op(const plan::OpLaunch& op, const BindContext& context) {
  return std::make_unique<OpKernel>(op, context);
}

}  // namespace hearth::backend::cpu
