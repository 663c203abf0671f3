#pragma once
/// Products of some tens of rows (kernels/columns.h).

#include <cstdint>
#include <span>

#include "backend/gpu/executor/matrix_product.h"

namespace hearth::backend::gpu {

/// Whether so many rows are multiplied faster with a matrix by such launches than by those that
/// prepare their input for themselves (executor/strips.h).
[[nodiscard]] bool prefers_columns(std::uint32_t rows, graph::WeightId matrix,
                                   const Recorder& recorder);

/// Whether such a launch takes a product, as one of a pair or for itself. Of fewer rows, too, if
/// strips have no room for them.
[[nodiscard]] bool takes_columns(const MatrixProduct& product, const MatrixInput& input,
                                 const Recorder& recorder);

/// Whether such a launch takes a product with a matrix of floats beside one that takes columns.
[[nodiscard]] bool takes_float_columns(const MatrixProduct& product, const MatrixInput& input,
                                       const Recorder& recorder);

/// Whether one takes both as a pair.
[[nodiscard]] bool takes_column_pair(const MatrixProduct& gate, const MatrixProduct& up,
                                     const MatrixInput& input, const Recorder& recorder);

/// What experts said of each row, to be added up.
struct SlotSum {
  BufferPart said;  // f32 [rows, slots, features]
  graph::ValueId routing{};
};

/// Records products of one input, each of which takes columns, whose input has been prepared: one,
/// or up to COLUMN_PARTS without gate, residual and experts; of one, with a sum that is added to
/// it.
void record_columns(std::span<const MatrixProduct> products, const MatrixInput& input,
                    Recorder& recorder, const SlotSum* sum = nullptr);

/// Records activation(gate) * up, which it takes as a pair; to where `up` goes.
void record_column_pair(const MatrixProduct& gate, const MatrixProduct& up,
                        graph::ActivationKind activation, const MatrixInput& input,
                        Recorder& recorder);

}  // namespace hearth::backend::gpu
