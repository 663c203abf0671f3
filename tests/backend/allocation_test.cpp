/// A step must not allocate: this binary counts every operator new.

#include <atomic>
#include <cstdlib>
#include <new>

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
  for (const auto family : {graph::Family::llama, graph::Family::gemma}) {
    const graph::TinyModel model(family, {}, {quant::find("Q4_1")->dtype, DType::f16});
    const auto backend = make_cpu_backend({.n_threads = 2}).value();
    const auto session = backend->open(model.weights(), model.kv_cache(DType::f16, 2)).value();
    const auto executable = session
                                ->compile(plan::make_plan(model.record({16, 2}), model.weights(),
                                                          backend->plan_options()))
                                .value();
    const std::vector<std::int32_t> blocks{1, 0};
    for (const std::int32_t n_rows : {16, 1, 5}) {
      std::vector<std::int32_t> positions;
      for (std::int32_t row = 0; row < n_rows; ++row) {
        positions.push_back(row);
      }
      const std::vector<TokenId> tokens(positions.size(), TokenId{3});
      const std::vector<std::int32_t> sequences(positions.size(), 0);
      const std::vector<std::int32_t> logit_rows{n_rows - 1};
      const int before = n_allocations.load();
      const auto logits = executable->run({.tokens = tokens,
                                           .positions = positions,
                                           .sequences = sequences,
                                           .logit_rows = logit_rows,
                                           .block_tables = blocks,
                                           .table_stride = 2});
      EXPECT_EQ(n_allocations.load(), before) << n_rows << " rows";
      EXPECT_TRUE(logits.has_value());
    }
  }
}

}  // namespace
}  // namespace hearth::backend
