#pragma once
/// Matrix tiles: 16 x 16 numbers that one simdgroup owns, f16 operands, f32 sums. It is what
/// Metal's simdgroup_matrix, CUDA's warp matrix instructions and the tensor units of newer chips
/// have in common. Which lane holds which element is nobody's business: elements come from shared
/// memory and go back to it. `stride` counts elements between rows and is a multiple of 8; pointers
/// are multiples of 16 elements (CUDA loads 32 bytes at once). All 32 lanes call together.
///
///   TileA, TileB, TileSum
///   tile_zero(sum)
///   tile_load(a, shared, stride)             a(i, k) = shared[i * stride + k]
///   tile_load_transposed(b, shared, stride)  b(k, j) = shared[j * stride + k]
///   tile_multiply_add(sum, a, b)             sum += a b
///   tile_store(shared, stride, sum)          shared[i * stride + j] = sum(i, j)

#ifdef __CUDACC__
#include "backend/gpu/dialect/tiles_cuda.h"
#else
#include "backend/gpu/dialect/tiles_emulator.h"
#endif
