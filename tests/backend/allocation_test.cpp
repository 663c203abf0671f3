/// A step must not allocate: this binary counts every operator new.

#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "quant/registry.h"
#include "tests/graph/tiny_model.h"

namespace {

std::atomic<int> n_allocations{0};

void* counted_allocation(std::size_t bytes) {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return counted_allocation(bytes);
}
void* operator new[](std::size_t bytes) {
  return counted_allocation(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace hearth::backend {
namespace {

TEST(CpuExecutable, AllocatesNothingWhileItRuns) {
  constexpr std::int64_t n_blocks = 70;
  for (const auto family : {graph::Family::llama, graph::Family::gemma, graph::Family::hybrid}) {
    const graph::TinyModel model(family, {}, {quant::find("Q4_1")->dtype, DType::f16});
    const auto backend = make_cpu_backend({.n_threads = 2}).value();
    const auto session =
        backend->open(model.weights(), {model.kv_cache(DType::f16, n_blocks), model.states(1), {}})
            .value();
    const auto executable = session
                                ->compile(plan::make_plan(model.record({16, 2}), model.weights(),
                                                          backend->plan_options()))
                                .value();
    std::vector<std::int32_t> blocks(n_blocks);
    std::iota(blocks.begin(), blocks.end(), 0);
    const std::vector<std::int32_t> state_slots{0};
    struct Rows {
      std::int32_t n;
      std::int32_t first_position;
    };
    // The last ones see several partitions of keys, which threads share.
    for (const auto [n_rows, first] : {Rows{16, 0}, Rows{1, 16}, Rows{5, 17}, Rows{1, 1070}}) {
      std::vector<std::int32_t> positions(static_cast<std::size_t>(n_rows));
      std::iota(positions.begin(), positions.end(), first);
      const std::vector<TokenId> tokens(positions.size(), TokenId{3});
      const std::vector<std::int32_t> sequences(positions.size(), 0);
      const std::vector<std::int32_t> logit_rows{n_rows - 1};
      const int before = n_allocations.load();
      const auto logits = executable->run({.tokens = tokens,
                                           .positions = positions,
                                           .sequences = sequences,
                                           .logit_rows = logit_rows,
                                           .block_tables = blocks,
                                           .table_stride = n_blocks,
                                           .state_slots = state_slots});
      EXPECT_EQ(n_allocations.load(), before) << n_rows << " rows";
      EXPECT_TRUE(logits.has_value());
    }
  }
}

}  // namespace
}  // namespace hearth::backend
