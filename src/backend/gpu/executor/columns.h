#pragma once
/// Products of some tens of rows (kernels/columns.h).

#include <span>

#include "backend/gpu/executor/matrix_product.h"

namespace hearth::backend::gpu {

/// Whether such a launch takes a product, as one of a pair or for itself.
[[nodiscard]] bool takes_columns(const MatrixProduct& product, const MatrixInput& input,
                                 const Recorder& recorder);

/// Whether one takes both as a pair.
[[nodiscard]] bool takes_column_pair(const MatrixProduct& gate, const MatrixProduct& up,
                                     const MatrixInput& input, const Recorder& recorder);

/// Records products of one input, each of which takes columns and has been prepared: one, or up to
/// COLUMN_PARTS without gate, residual and experts.
void record_columns(std::span<const MatrixProduct> products, const MatrixInput& input,
                    Recorder& recorder);

/// Records activation(gate) * up, which it takes as a pair; to where `up` goes.
void record_column_pair(const MatrixProduct& gate, const MatrixProduct& up,
                        graph::ActivationKind activation, const MatrixInput& input,
                        Recorder& recorder);

}  // namespace hearth::backend::gpu
