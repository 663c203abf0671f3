#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/gpu/emulator/group_runner.h"
#include "base/result.h"

namespace hearth::backend::gpu::emulator {

struct EmulatorOptions {
  int n_workers = 1;  // threads; the calling one is the first
  /// Permutes lanes, simdgroups and threadgroups; 0 is the natural order. A kernel whose bits
  /// depend on it has a race, or a sum in no fixed order.
  std::uint64_t seed = 0;
};

/// Runs GPU kernels on the processor, lock step inside simdgroups, and checks what GPUs do not:
///  - every access: inside its buffer or shared array, and aligned to its size;
///  - lanes and threads that come to different barriers or collectives, or leave before them;
///  - shared memory: its size, arrays that only some threads declare; NaN where nothing was
///    written;
///  - kernels that run early: what they read before they wait is as it was before the kernels in
///    front of them (MemoryRange::before), and every thread waits;
///  - arguments: number, sizes of parameters and threadgroups, buffers that overlap while one of
///    them is written;
///  - races, in builds with the thread sanitizer.
/// Kernels must not block and own no memory. One thread at a time.
class Emulator {
 public:
  explicit Emulator(const EmulatorOptions& options);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  /// Runs one dispatch to its end. After an error, what the dispatch writes is unspecified.
  /// Errors: invalid_argument for arguments that the kernel cannot take; internal for a fault of
  /// the kernel, with kernel, threadgroup, thread and source line.
  Result<void> run(const EmulatedKernel& kernel, std::span<const MemoryRange> buffers,
                   std::span<const std::byte> params, Dim3 grid, Dim3 group_size);

 private:
  class Workers;

  std::uint64_t seed_;
  std::uint64_t n_dispatches_ = 0;
  std::unique_ptr<Workers> workers_;
};

}  // namespace hearth::backend::gpu::emulator
