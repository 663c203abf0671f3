#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "graph/value.h"

namespace hearth::backend {

enum class WeightLayout : std::uint8_t {
  automatic,  // tiles for as much as fits well into memory
  tiles,      // matrices are copied into the order in which the kernels read them
  mapped,     // matrices stay in the file mapping, and each panel is turned as it is read
};

/// A file that keeps the tiles of one model (backend/cpu/tile_cache.h).
struct TileCacheOptions {
  std::filesystem::path file;  // made or made anew where it does not fit
  std::vector<std::filesystem::path> model_files;
  const graph::WeightTable* weights = nullptr;  // sessions of others do not use it
};

struct CpuOptions {
  int n_threads = 0;  // 0: one for each core that the process may use and that is fast enough
  WeightLayout layout = WeightLayout::automatic;
  std::optional<TileCacheOptions> tile_cache;
};

/// The CPU backend: fused launches on a persistent thread pool. Bit-equal with the reference
/// backend for every thread count, batch and chunking. All its sessions share the threads, so one
/// step runs at a time. Errors: invalid_argument for a negative thread count or an unknown
/// HEARTH_CPU_KERNELS.
Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

}  // namespace hearth::backend
