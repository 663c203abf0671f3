/// Matrix products of the CPU kernels on one thread, in multiply-adds and bytes of weights per
/// second: each kernel set, weight format, layout, number of activation rows and row length.
/// `--benchmark_filter=avx512/Q4_1/tiles` picks.

#include <vector>

#include <benchmark/benchmark.h>

#include "backend/cpu/kernels/kernel_set.h"
#include "base/checked.h"
#include "base/format.h"
#include "quant/registry.h"
#include "tensor/buffer.h"

namespace hearth::backend::cpu {
namespace {

constexpr std::int64_t n_out = 512;  // the weights then come from the second-level cache

void run_matmul(benchmark::State& state, const KernelSet& set, DType dtype, std::int64_t n_rows,
                std::int64_t n_in, bool is_tiled) {
  const auto* layout = quant::integer_layout(dtype);
  const std::vector<float> values(static_cast<std::size_t>(n_rows * n_in), 0.5f);
  std::vector<ActivationStep> steps(
      static_cast<std::size_t>(n_rows * ceil_div(n_in, step_weights) + step_slack));
  for (std::int64_t row = 0; row < n_rows && layout != nullptr; ++row) {
    set.quantize(values.data() + row * n_in, n_in, layout->activation_block, steps.data() + row,
                 n_rows);
  }
  const std::int64_t row_bytes = quant::row_bytes(dtype, n_in);
  const Buffer weights(n_out * row_bytes);
  std::vector<float> out(static_cast<std::size_t>(n_rows * n_out));
  Buffer scratch(matmul_scratch_bytes(row_bytes, n_in, n_rows));
  const MatmulTask task{.weights = weights.bytes().data(),
                        .weight_row_bytes = row_bytes,
                        .is_tiled = is_tiled,
                        .n_in = n_in,
                        .n_out = n_out,
                        .x = {values.data(), steps.data()},
                        .n_rows = n_rows,
                        .out = out.data(),
                        .out_stride = n_out,
                        .scratch = scratch.bytes().data()};
  for (auto _ : state) {
    set.matmul_for(dtype, n_rows)(task);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["MAC/s"] = benchmark::Counter(static_cast<double>(n_rows * n_in * n_out),
                                               benchmark::Counter::kIsIterationInvariantRate);
  state.counters["B/s"] = benchmark::Counter(static_cast<double>(n_out * row_bytes),
                                             benchmark::Counter::kIsIterationInvariantRate);
}

void register_all(const std::vector<KernelSet>& sets) {
  for (const auto& set : sets) {
    for (const auto& type : quant::all()) {
      const auto dtype = static_cast<std::size_t>(type.dtype);
      for (const bool is_tiled : {true, false}) {
        for (const std::int64_t n_in : {576, 2048}) {
          for (const std::int64_t n_rows : {1, 4, 32, 512}) {
            if (set.matmul[dtype] != nullptr && n_in % type.block_weights == 0 &&
                (!is_tiled || set.interleave[dtype] != nullptr)) {
              const auto label = format("{}/{}/{}/rows:{}/k:{}", set.name, type.name,
                                        is_tiled ? "tiles" : "native", n_rows, n_in);
              benchmark::RegisterBenchmark(
                  label.c_str(), [&set, &type, n_rows, n_in, is_tiled](benchmark::State& state) {
                    run_matmul(state, set, type.dtype, n_rows, n_in, is_tiled);
                  });
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth::backend::cpu

int main(int argc, char** argv) {
  const auto sets = hearth::backend::cpu::supported_kernel_sets();
  hearth::backend::cpu::register_all(sets);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
