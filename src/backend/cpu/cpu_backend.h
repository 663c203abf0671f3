#pragma once

#include <memory>

#include "backend/backend.h"

namespace hearth::backend {

struct CpuOptions {
  int n_threads = 0;  // 0: as many as the machine lets this process use
};

/// The CPU backend: fused launches on a persistent thread pool, weights read in place from the file
/// mapping. Bit-equal with the reference backend for every thread count, batch and chunking.
/// All its sessions share the threads, so one step runs at a time.
/// Errors: invalid_argument for a negative thread count or an unknown HEARTH_CPU_KERNELS.
Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

}  // namespace hearth::backend
