#pragma once
/// Matrix-vector products with quantized weights as they lie in GGUF, activations in f32.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// matvec_q4_k, matvec_q6_k, matvec_q8_0: y = x weight^T.
/// weight [n_out, n_in] in blocks, x [rows, n_in], y [rows, n_out].
/// Threadgroups of matvec_threads; grid (ceil(n_out / matvec_group_rows), rows). What a row of x
/// gives depends on that row alone.
struct MatvecParams {
  u32 n_in;  // a multiple of the block
  u32 n_out;
};

#define MATVEC_SIMDGROUPS 2      // of a threadgroup
#define MATVEC_SIMDGROUP_ROWS 2  // rows of the matrix that one simdgroup computes

}  // namespace hearth::backend::gpu
