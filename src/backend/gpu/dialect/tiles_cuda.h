#pragma once
/// dialect/tiles.h on CUDA: the warp matrix instructions.

#include <mma.h>

#include "backend/gpu/dialect/cuda.h"

namespace hearth::backend::gpu {

struct TileA {
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, f16, nvcuda::wmma::row_major> elements;
};
struct TileB {
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, f16, nvcuda::wmma::col_major> elements;
};
struct TileSum {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, f32> elements;
};

DEVICE_FN void tile_zero(TileSum& sum) {
  nvcuda::wmma::fill_fragment(sum.elements, 0.0f);
}
DEVICE_FN void tile_load(TileA& a, const f16* from, u32 stride) {
  nvcuda::wmma::load_matrix_sync(a.elements, from, stride);
}
DEVICE_FN void tile_load_transposed(TileB& b, const f16* from, u32 stride) {
  nvcuda::wmma::load_matrix_sync(b.elements, from, stride);
}
DEVICE_FN void tile_multiply_add(TileSum& sum, const TileA& a, const TileB& b) {
  nvcuda::wmma::mma_sync(sum.elements, a.elements, b.elements, sum.elements);
}
DEVICE_FN void tile_store(f32* to, u32 stride, const TileSum& sum) {
  nvcuda::wmma::store_matrix_sync(to, sum.elements, stride, nvcuda::wmma::mem_row_major);
}

}  // namespace hearth::backend::gpu
