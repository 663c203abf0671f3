#include "backend/gpu/kernels/read_stream.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"

namespace hearth::backend::gpu {
namespace {

TEST(GpuReadStream, ReadsEveryWordOnce) {
  constexpr u32 n_groups = 2;
  constexpr u64 n = 4 * 2 * 64 + 77;  // pieces: whole rounds of all threads, and a part of one
  std::vector<u32> words(4 * n);
  std::iota(words.begin(), words.end(), 1u);
  const auto results =
      run_everywhere(call(KernelId::read_stream_u32, {contents(words), poisoned(n_groups)},
                          ReadStreamParams{n}, {n_groups}, {64}));
  const auto sums = values<u32>(results.back());
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0u),
            std::accumulate(words.begin(), words.end(), 0u));
}

}  // namespace
}  // namespace hearth::backend::gpu
