#pragma once

#include <optional>

#include "backend/gpu/executor/matrix_input.h"
#include "backend/gpu/kernels/product.h"

namespace hearth::backend::gpu {

/// What a product's results are multiplied by.
struct ProductGate {
  std::uint32_t kind = PRODUCT_NO_GATE;
  graph::ActivationKind activation{};
  BufferPart value;
};

/// The rows of each expert, brought together (kernels/expert_rows.h).
struct ExpertRows {
  BufferPart entries, tiles;
  std::uint32_t n_tiles = 0;
};

/// The experts that rows have chosen.
struct ProductExperts {
  graph::ValueId routing{};
  std::int64_t first_row = 0;  // of each expert's matrix
  bool has_x_per_slot = false;
  std::optional<ExpertRows> rows;  // for products that take tiles
};

/// One product of a matrix with a launch's input, and where its results go.
struct MatrixProduct {
  graph::WeightId weight{};
  std::int64_t n_out = 0;
  std::optional<graph::WeightId> bias;
  ProductGate gate;
  std::optional<graph::ValueId> residual;
  std::optional<ProductExperts> experts;
  BufferPart y;

  /// Records what the product reads beside its weights; a barrier is due before the product.
  void prepare(MatrixInput& input, Recorder& recorder);
  /// It has been prepared. Errors: unsupported for a type without kernel.
  [[nodiscard]] Result<void> record(const MatrixInput& input, Recorder& recorder) const;
};

/// Records activation(gate) * up [+ residual of `up`], to where `up` goes: in one launch where that
/// takes them, otherwise with the gate in memory of the launch that is being recorded.
Result<void> record_gated_products(MatrixProduct gate, MatrixProduct up,
                                   graph::ActivationKind activation, MatrixInput& input,
                                   Recorder& recorder);

/// Records a projection whose input is that value, normed and gated as it says, and may have been
/// prepared.
Result<void> record_projection(const plan::Projection& projection, MatrixInput& input,
                               Recorder& recorder, const ConvolvedPart* conv = nullptr);

}  // namespace hearth::backend::gpu
