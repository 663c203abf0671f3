/// Matrix products of the CPU kernels on one thread, in multiply-adds per second: each kernel set,
/// weight format, number of activation rows and row length. `--benchmark_filter=avx512/Q4_1` picks.

#include <algorithm>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "backend/cpu/kernels/kernel_set.h"
#include "quant/activation.h"
#include "quant/registry.h"

namespace hearth::backend::cpu {
namespace {

constexpr std::int64_t n_out = 512;  // the weights then come from the second-level cache

/// Activations in all three forms.
struct Activations {
  Activations(std::int64_t n_rows, std::int64_t n_in, int block)
      : values(static_cast<std::size_t>(n_rows * n_in), 0.5f),
        codes(values.size(), 3),
        scales(values.size() / static_cast<std::size_t>(block), 1.0f),
        sums(values.size() / quant::activation_sum_group, 48) {}

  std::vector<float> values;
  std::vector<std::int16_t> codes;
  std::vector<float> scales;
  std::vector<std::int16_t> sums;
};

void run_matmul(benchmark::State& state, MatmulKernel kernel, DType dtype, std::int64_t n_rows,
                std::int64_t n_in) {
  const auto* layout = quant::integer_layout(dtype);
  const Activations x(n_rows, n_in, layout != nullptr ? layout->activation_block : 32);
  const std::int64_t row_bytes = quant::row_bytes(dtype, n_in);
  const std::vector<std::byte> weights(static_cast<std::size_t>(n_out * row_bytes));
  std::vector<float> out(static_cast<std::size_t>(n_rows * n_out));
  std::vector<std::byte> scratch(static_cast<std::size_t>(matmul_scratch_bytes(n_in)));
  const MatmulTask task{.weights = weights.data(),
                        .weight_row_bytes = row_bytes,
                        .n_in = n_in,
                        .n_out = n_out,
                        .x = {x.values.data(), x.codes.data(), x.scales.data(), x.sums.data()},
                        .n_rows = n_rows,
                        .out = out.data(),
                        .out_stride = n_out,
                        .scratch = scratch.data()};
  for (auto _ : state) {
    kernel(task);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["MAC/s"] = benchmark::Counter(static_cast<double>(n_rows * n_in * n_out),
                                               benchmark::Counter::kIsIterationInvariantRate);
}

void register_all(const std::vector<KernelSet>& sets) {
  for (const auto& set : sets) {
    for (const auto& type : quant::all()) {
      const auto kernel = set.matmul[static_cast<std::size_t>(type.dtype)];
      for (const std::int64_t n_in : {576, 2048}) {
        for (const std::int64_t n_rows : {1, 32, 512}) {
          if (kernel != nullptr && n_in % type.block_weights == 0) {
            const auto label = std::string(set.name) + "/" + std::string(type.name) +
                               "/rows:" + std::to_string(n_rows) + "/k:" + std::to_string(n_in);
            benchmark::RegisterBenchmark(label.c_str(), run_matmul, kernel, type.dtype, n_rows,
                                         n_in);
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
