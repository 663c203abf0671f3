#pragma once
/// Products of few rows in launches that norm and quantize their input themselves
/// (kernels/strips.h).

#include <cstdint>
#include <optional>
#include <span>

#include "backend/gpu/executor/matrix_product.h"

namespace hearth::backend::gpu {

/// Rows up to which such launches are faster than preparing the input once: the weights are read
/// again for every STRIP_MAX_ROWS.
inline constexpr std::uint32_t max_strip_rows = 16;

/// StripParams::type of a matrix; nothing for others.
[[nodiscard]] std::optional<std::uint32_t> strip_type(graph::WeightId matrix,
                                                      const Recorder& recorder);

/// Whether such a launch takes a product, for itself or as one of a pair.
[[nodiscard]] bool takes_strips(const MatrixProduct& product, const MatrixInput& input,
                                const Recorder& recorder, bool is_pair = false);

/// Whether threadgroups have room for all rows at once with a matrix that has a strip_type, so that
/// it is read once.
[[nodiscard]] bool fits_strips(const MatrixProduct& product, const MatrixInput& input,
                               const Recorder& recorder, bool is_pair = false);

/// A convolution of what the first of several products gives, on its way out.
struct StripConv {
  const graph::CausalConv& op;
  BufferPart y;
};

/// Whether strips of a step's only row can do a convolution of a product.
[[nodiscard]] bool takes_conv(const MatrixProduct& product, const graph::CausalConv& conv,
                              const Recorder& recorder);

/// Records products of one input, each of which takes strips: one, or up to STRIP_PARTS without
/// gate and residual; with the convolution, if it takes it.
void record_strips(std::span<const MatrixProduct> products, MatrixInput& input, Recorder& recorder,
                   const StripConv* conv = nullptr);

/// Records activation(gate) * up, both of which take strips and have one type; to where `up` goes.
void record_strip_pair(const MatrixProduct& gate, const MatrixProduct& up,
                       graph::ActivationKind activation, MatrixInput& input, Recorder& recorder);

}  // namespace hearth::backend::gpu
