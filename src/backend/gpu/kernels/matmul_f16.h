#pragma once
/// Matrix products with f16 weights, for many rows.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// matmul_f16: y = x weight^T. weight [n_out, n_in] f16, x [rows, n_in] (rounded to f16 on the
/// way), y [rows, n_out]. Threadgroups of 128 compute 32 x 32 results; grid (ceil(n_out / 32),
/// ceil(rows / 32)).
struct MatmulParams {
  u32 rows;
  u32 n_in;  // a multiple of 32
  u32 n_out;
};

}  // namespace hearth::backend::gpu
