/// Whole steps of a model of SmolLM2-135M's size with random Q4_1 weights: decode steps at short
/// and long contexts and prompt chunks, on 1 and 2 threads.

#include <vector>

#include <benchmark/benchmark.h>

#include "backend/cpu/cpu_backend.h"
#include "quant/registry.h"
#include "quant/types/q4_0.h"
#include "quant/types/q8_0.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend {
namespace {

constexpr std::int64_t context = 16384;

const graph::TinyModel& model() {
  static const graph::TinyModel made(graph::Family::llama,
                                     {.n_layers = 30,
                                      .embed = 576,
                                      .ffn = 1536,
                                      .n_heads = 9,
                                      .n_kv_heads = 3,
                                      .head_dim = 64,
                                      .vocab = 49152},
                                     {quant::find("Q4_1")->dtype});
  return made;
}

/// state.range: threads, rows, position of the first row, DType number of the cache. Only the last
/// row asks for logits.
void run_step(benchmark::State& state) {
  const auto backend = make_cpu_backend({.n_threads = static_cast<int>(state.range(0))}).value();
  const auto n_rows = static_cast<std::size_t>(state.range(1));
  const auto n_blocks = context / graph::kv_block_tokens;
  const auto session =
      backend
          ->open(model().weights(),
                 {model().kv_cache(static_cast<DType>(state.range(3)), n_blocks), {}, {}})
          .value();
  const auto plan = plan::make_plan(model().record({state.range(1), 1}), model().weights(),
                                    backend->plan_options());
  const auto executable = session->compile(plan).value();

  const std::vector<TokenId> tokens(n_rows, TokenId{7});
  std::vector<std::int32_t> positions(n_rows);
  for (std::size_t row = 0; row < n_rows; ++row) {
    positions[row] = static_cast<std::int32_t>(state.range(2)) + static_cast<std::int32_t>(row);
  }
  const std::vector<std::int32_t> sequences(n_rows, 0);
  const std::vector<std::int32_t> logit_rows{static_cast<std::int32_t>(n_rows) - 1};
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(n_blocks));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = static_cast<std::int32_t>(i);
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(executable->run({.tokens = tokens,
                                              .positions = positions,
                                              .sequences = sequences,
                                              .logit_rows = logit_rows,
                                              .block_tables = blocks,
                                              .table_stride = n_blocks}));
  }
  state.counters["tokens/s"] = benchmark::Counter(static_cast<double>(n_rows),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}

constexpr auto f16 = static_cast<std::int64_t>(DType::f16);
constexpr auto q8_0 = static_cast<std::int64_t>(quant::Q8_0::info.dtype);
constexpr auto q4_0 = static_cast<std::int64_t>(quant::Q4_0::info.dtype);

BENCHMARK(run_step)
    ->ArgNames({"threads", "rows", "position", "kv_type"})
    ->Args({1, 1, 100, f16})
    ->Args({2, 1, 100, f16})
    ->Args({2, 1, 500, f16})
    ->Args({2, 1, 4000, f16})
    ->Args({1, 1, 16000, f16})
    ->Args({1, 1, 16000, q8_0})
    ->Args({1, 1, 16000, q4_0})
    ->Args({2, 1, 16000, f16})
    ->Args({2, 8, 4000, f16})
    ->Args({1, 40, 0, f16})
    ->Args({2, 40, 0, f16})
    ->Args({2, 512, 0, f16})
    ->Args({2, 512, 3584, f16})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace hearth::backend

BENCHMARK_MAIN();
