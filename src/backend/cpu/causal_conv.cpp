/// CausalConv: threads share out blocks of channels, which know nothing of each other, and take the
/// rows in order. Several blocks share a pass over the rows, since a row's channels lie far from
/// the next row's: what is read from each is then long enough for the processor to foresee it.

#include <algorithm>

#include "backend/cpu/carver.h"
#include "backend/cpu/launch_kernel.h"

namespace hearth::backend::cpu {
namespace {

constexpr std::int64_t blocks_together = 8;

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
    auto* weights = Carver(run.scratch_of(worker)).take<float>(weight_floats());
    const auto share = worker.share(ceil_div(channels(), conv_block));
    for (std::int64_t block = share.begin; block < share.end; block += blocks_together) {
      const std::int64_t begin = block * conv_block;
      const std::int64_t end =
          std::min(std::min(block + blocks_together, share.end) * conv_block, channels());
      for (std::int64_t channel = begin; channel < end; ++channel) {
        float* to = weights + (channel - begin) / conv_block * conv_block * taps_;
        for (std::int64_t tap = 0; tap < taps_; ++tap) {
          to[tap * conv_block + (channel - begin) % conv_block] = weights_[channel * taps_ + tap];
        }
      }
      for (std::int64_t row = 0; row < x_.rows(run.step); ++row) {
        for (std::int64_t first = begin; first < end; first += conv_block) {
          run_row(run, row, first, std::min(conv_block, end - first),
                  weights + (first - begin) * taps_);
        }
      }
    }
  }

  [[nodiscard]] std::int64_t private_bytes() const override {
    Carver measure(nullptr);
    measure.take<float>(weight_floats());
    return measure.used();
  }

 private:
  [[nodiscard]] std::int64_t channels() const { return x_.desc.features; }
  [[nodiscard]] std::int64_t weight_floats() const { return blocks_together * conv_block * taps_; }

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
