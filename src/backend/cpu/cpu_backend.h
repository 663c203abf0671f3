#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"

namespace hearth::backend {

enum class WeightLayout : std::uint8_t {
  automatic,  // tiles for as much as fits well into memory
  tiles,      // matrices are copied into the order in which the kernels read them
  mapped,     // matrices stay in the file mapping, and each panel is turned as it is read
};

struct CpuOptions {
  int n_threads = 0;  // 0: one for each core that the process may use and that is fast enough
  WeightLayout layout = WeightLayout::automatic;
};

/// The CPU backend: fused launches on a persistent thread pool. Bit-equal with the reference
/// backend for every thread count, batch and chunking. All its sessions share the threads, so one
/// step runs at a time. Errors: invalid_argument for a negative thread count or an unknown
/// HEARTH_CPU_KERNELS.
Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

}  // namespace hearth::backend
