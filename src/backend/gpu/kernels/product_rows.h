#pragma once
/// Products of many rows (prompts) with matrices of floats.

#include "backend/gpu/kernels/product.h"

namespace hearth::backend::gpu {

#define PRODUCT_ROWS_THREADS 256
#define PRODUCT_ROWS_ROWS 64     // of the step, in a threadgroup,
#define PRODUCT_ROWS_OUTPUTS 32  // by so many of the matrix;
#define PRODUCT_ROWS_FEW 16      // of the step, if the matrix has no more than that

/// product_rows_f32, product_rows_f16, product_rows_bf16: what product_<type> computes for
/// one matrix (n_used = 0), with the same buffers but for routing: 0 counts, 1 weight, 2 x, 3 bias,
/// 4 gate, 5 residual, 6 y. Threadgroups of PRODUCT_ROWS_THREADS, grid (ceil(capacity / rows),
/// ceil(n_out / PRODUCT_ROWS_OUTPUTS)), where rows are PRODUCT_ROWS_FEW or PRODUCT_ROWS_ROWS.

}  // namespace hearth::backend::gpu
