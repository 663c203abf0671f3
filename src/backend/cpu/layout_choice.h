#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "graph/value.h"

namespace hearth::backend::cpu {

/// Which weights become tiles; the others stay in the file's mapping.
struct LayoutChoice {
  std::vector<bool> is_tiled;  // by WeightId
  std::string reason;          // for people
};

/// Tiles take the place of the file's pages, which are dropped as they are turned; but memory of
/// our own cannot be taken away and read again, as the file's pages can, so a model that nearly
/// fills `all_memory` bytes gets tiles for a part only: first for what every token reads, then for
/// experts. Weights that are in memory already, because they are no file's, leave that much less.
LayoutChoice choose_layout(WeightLayout wanted, const graph::WeightTable& weights,
                           std::int64_t all_memory);

}  // namespace hearth::backend::cpu
