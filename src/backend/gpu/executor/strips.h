#pragma once
/// Products of few rows in launches that norm and quantize their input themselves
/// (kernels/strips.h).

#include <span>

#include "backend/gpu/executor/matrix_product.h"

namespace hearth::backend::gpu {

/// Whether such a launch takes a product, as one of a pair or for itself.
[[nodiscard]] bool takes_strips(const MatrixProduct& product, const MatrixInput& input,
                                const Recorder& recorder);

/// Records products of one input, each of which takes strips: one, or up to STRIP_PARTS without
/// gate and residual.
void record_strips(std::span<const MatrixProduct> products, MatrixInput& input, Recorder& recorder);

/// Records activation(gate) * up, both of which take strips and have one type; to where `up` goes.
void record_strip_pair(const MatrixProduct& gate, const MatrixProduct& up,
                       graph::ActivationKind activation, MatrixInput& input, Recorder& recorder);

}  // namespace hearth::backend::gpu
