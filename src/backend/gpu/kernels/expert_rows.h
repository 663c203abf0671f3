#pragma once
/// The rows that each expert was chosen for, brought together.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define EXPERT_ROWS_THREADS 256

/// Tiles of all experts for at most n entries: what fills tiles, and one more for each expert.
#define EXPERT_TILES(n, n_experts, tile_entries) ((n) / (tile_entries) + (n_experts))

/// expert_rows. An entry is a row of the step and a slot: row * n_used + slot. Buffers:
///   0 counts u32 [3], 1 routing f32 [rows, 2 n_used]   as graph::Router writes it
///   2 entries u32 [capacity * n_used]   those of expert 0 in order, then those of expert 1, ...
///   3 tiles u32 [n_tiles, 3]            expert, place of its first entry, number of entries: at
///                                       most tile_entries of one expert, 0 where there is no tile
/// n_tiles = EXPERT_TILES(capacity * n_used, n_experts, tile_entries). Threadgroups of
/// EXPERT_ROWS_THREADS, grid (n_experts).
struct ExpertRowsParams {
  u32 n_used;
  u32 n_experts;
  u32 tile_entries;
  u32 n_tiles;
};

}  // namespace hearth::backend::gpu
