#pragma once

#include "graph/ops/op_context.h"
#include "tensor/dtype.h"

namespace hearth::graph {

/// out = x matrix^T, in the canonical arithmetic that matmul.h states. The matrix is
/// [out.features, x.features] in blocks of `dtype`; a row of `out` depends on its row of `x` alone.
void multiply_matrix(DType dtype, Bytes matrix, const ConstRows& x, const Rows& out);

}  // namespace hearth::graph
