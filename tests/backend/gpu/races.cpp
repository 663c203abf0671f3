/// Runs a kernel with a planted race, which the thread sanitizer has to report: races KERNEL

#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "backend/gpu/emulator/emulator.h"
#include "tests/backend/gpu/fault_kernels.h"

namespace gpu = hearth::backend::gpu;

int main(int argc, char** argv) {
  const std::string_view name = argc == 2 ? argv[1] : "";
  for (const auto* kernel :
       {&gpu::race_missing_barrier_emulated, &gpu::race_write_after_read_emulated,
        &gpu::race_between_groups_emulated}) {
    if (kernel->info.name != name) {
      continue;
    }
    std::vector<float> x(64, 1.0f);
    std::vector<float> y(64);
    const std::vector<gpu::emulator::MemoryRange> buffers{
        {reinterpret_cast<std::byte*>(x.data()), 256, "x"},
        {reinterpret_cast<std::byte*>(y.data()), 256, "y"}};
    const gpu::TestParams params{3};
    // One threadgroup where the race is inside of it.
    const gpu::Dim3 grid{name == "race_between_groups" ? 2u : 1u};
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      gpu::emulator::Emulator emulator({.seed = seed});
      if (!emulator.run(*kernel, buffers, std::as_bytes(std::span(&params, 1)), grid,
                        {kernel->info.max_threads})) {
        std::puts("a fault instead of a race");
        return 1;
      }
    }
    return 0;
  }
  std::puts("usage: races KERNEL");
  return 2;
}
