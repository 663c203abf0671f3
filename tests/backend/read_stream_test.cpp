#include "backend/cpu/read_stream.h"

#include <chrono>

#include <gtest/gtest.h>

namespace hearth::backend::cpu {
namespace {

TEST(CpuReadStream, MeasuresASpeedThatFitsTheTimeItTook) {
  constexpr std::int64_t n_bytes = 8 << 20;
  for (const int n_threads : {1, 2, 3}) {
    CpuReadStream stream(n_threads, n_bytes);
    const auto start = std::chrono::steady_clock::now();
    const double bytes_per_second = stream.measure().value();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    EXPECT_GE(bytes_per_second * elapsed.count(), static_cast<double>(n_bytes))
        << n_threads << " threads: slower than the whole call";
    EXPECT_LT(bytes_per_second, 1e13) << n_threads << " threads: faster than any memory";
  }
}

}  // namespace
}  // namespace hearth::backend::cpu
