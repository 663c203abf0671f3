#pragma once
/// Products of many rows (prompts) with matrices in tiles, by integer tiles.

#include "backend/gpu/dialect/scalars.h"
#include "backend/gpu/kernels/product.h"

namespace hearth::backend::gpu {

#define TILE_PRODUCT_THREADS 256
#define TILE_PRODUCT_OUTPUTS 128  // rows of the matrix that a threadgroup multiplies,
#define TILE_PRODUCT_COLUMNS 64   // with so many x rows
#define TILE_PRODUCT_GROUPS (TILE_PRODUCT_COLUMNS / 8)

/// tile_product_<type> for TILED_TYPES: what product_<type> computes (ProductParams) for weights in
/// tiles, expert_rows and first_row multiples of TILE_ROWS. Threadgroups of TILE_PRODUCT_THREADS.
/// Buffers:
///   0 counts, 1 weight, 2 codes, 3 scales, 4 sums   as of product_<type>
///   5 entries u32, 6 tiles u32   from expert_rows; absent without experts
///   7 bias, 8 gate, 9 residual, 10 y                as of product_<type>
/// One matrix (n_used = 0): grid (ceil(n_out / TILE_PRODUCT_OUTPUTS), ceil(capacity /
/// TILE_PRODUCT_COLUMNS)). Experts: grid (ceil(n_out / TILE_PRODUCT_OUTPUTS), tiles of
/// expert_rows).

}  // namespace hearth::backend::gpu
