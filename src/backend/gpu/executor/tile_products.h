#pragma once
/// Products of many rows with matrices in tiles (kernels/tile_product.h).

#include "backend/gpu/executor/matrix_product.h"

namespace hearth::backend::gpu {

/// Whether such a kernel takes a product.
[[nodiscard]] bool takes_tiles(const MatrixProduct& product, const MatrixInput& input,
                               const Recorder& recorder);

/// Records what brings the rows of each expert together, at most tile_entries at once, in memory of
/// the launch that is being recorded.
ExpertRows record_expert_rows(const MatrixProduct& product, std::uint32_t tile_entries,
                              Recorder& recorder);

}  // namespace hearth::backend::gpu
