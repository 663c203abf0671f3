/// CausalConv: threads share out blocks of channels, which know nothing of each other, and take the
/// rows in order.

#include <algorithm>

#include "backend/cpu/carver.h"
#include "backend/cpu/launch_kernel.h"

namespace hearth::backend::cpu {
namespace {

class CausalConvKernel final : public LaunchKernel {
 public:
  CausalConvKernel(const plan::OpLaunch& launch, const BindContext& context)
      : kernels_(context.kernels),
        layer_(std::get<graph::CausalConv>(launch.op).layer),
        x_(context.values, launch.inputs.front()),
        output_(context.values, launch.output) {
    const auto weight = std::get<graph::CausalConv>(launch.op).weight;
    weights_ = graph::f32_data(context.weights, weight);
    taps_ = graph::tensor(context.weights, weight).shape.back();
  }

  void run(const Worker& worker, const RunContext& run) const override {
    auto* block_weights = Carver(run.scratch_of(worker)).take<float>(taps_ * conv_block);
    const auto share = worker.share(ceil_div(channels(), conv_block));
    for (std::int64_t block = share.begin; block < share.end; ++block) {
      const std::int64_t first = block * conv_block;
      const std::int64_t n = std::min(conv_block, channels() - first);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t tap = 0; tap < taps_; ++tap) {
          block_weights[tap * conv_block + i] = weights_[(first + i) * taps_ + tap];
        }
      }
      for (std::int64_t row = 0; row < x_.rows(run.step); ++row) {
        run_row(run, row, first, n, block_weights);
      }
    }
  }

  [[nodiscard]] std::int64_t private_bytes() const override {
    Carver measure(nullptr);
    measure.take<float>(taps_ * conv_block);
    return measure.used();
  }

 private:
  [[nodiscard]] std::int64_t channels() const { return x_.desc.features; }

  void run_row(const RunContext& run, std::int64_t row, std::int64_t first, std::int64_t n,
               const float* block_weights) const {
    const std::int64_t position = run.step.positions[static_cast<std::size_t>(row)];
    const std::int64_t at = row * channels() + first;
    kernels_.conv({.n_channels = n,
                   .taps = taps_,
                   .weights = block_weights,
                   .ring = run.states.ring_for(run.step, row, layer_, first, n),
                   .ring_stride = channels(),
                   .position = position,
                   .x = x_.data(run) + at,
                   .out = output_.data(run) + at});
  }

  const KernelSet& kernels_;
  std::int64_t layer_;
  const float* weights_ = nullptr;  // [channels, taps]
  std::int64_t taps_ = 0;
  ValueRef x_, output_;
};

}  // namespace

std::unique_ptr<LaunchKernel> bind_causal_conv(const plan::OpLaunch& launch,
                                               const BindContext& context) {
  return std::make_unique<CausalConvKernel>(launch, context);
}

}  // namespace hearth::backend::cpu
