#pragma once
/// Products of few rows in launches that prepare their input themselves (kernels/projection.h).

#include <span>

#include "backend/gpu/executor/matrix_product.h"

namespace hearth::backend::gpu {

/// Whether such a launch takes a product.
[[nodiscard]] bool takes_few_rows(const MatrixProduct& product, const MatrixInput& input,
                                  const Recorder& recorder);

/// Records products of one type, each of which takes few rows: one, or up to three without gate and
/// residual.
void record_few_rows(std::span<const MatrixProduct> products, const MatrixInput& input,
                     Recorder& recorder);

/// Records activation(gate) * up, both of which take few rows and have one type; to where `up`
/// goes.
void record_few_rows_pair(const MatrixProduct& gate, const MatrixProduct& up,
                          graph::ActivationKind activation, const MatrixInput& input,
                          Recorder& recorder);

}  // namespace hearth::backend::gpu
