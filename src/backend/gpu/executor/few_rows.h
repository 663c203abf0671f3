#pragma once
/// Products of few rows with matrices of floats, in launches that norm their input themselves
/// (kernels/projection.h).

#include <span>

#include "backend/gpu/executor/matrix_product.h"

namespace hearth::backend::gpu {

/// Whether such a launch takes a product.
[[nodiscard]] bool takes_few_rows(const MatrixProduct& product, const MatrixInput& input,
                                  const Recorder& recorder);

/// Records products, each of which takes few rows: one, or up to PROJECTION_PARTS without gate and
/// residual.
void record_few_rows(std::span<const MatrixProduct> products, const MatrixInput& input,
                     Recorder& recorder);

}  // namespace hearth::backend::gpu
