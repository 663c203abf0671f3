#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "formats/safetensors/container.h"
#include "model/huggingface/mlx_quantization.h"
#include "tensor/dtype.h"

namespace hearth::model {

/// A matrix, or a stack of them, as MLX quantizes one: three tensors that agree, two in the float
/// modes. Borrows them. Source: docs/formats/mlx.md.
struct MlxGroups {
  MlxPacking packing;
  const formats::SafetensorsTensor* codes{};   // X.weight, U32 [..., columns * bits / 32]
  const formats::SafetensorsTensor* scales{};  // X.scales [..., columns / group]
  const formats::SafetensorsTensor* biases{};  // X.biases, like the scales; affine only
  std::vector<std::int64_t> shape;             // of the weights
  DType dtype{};                               // whose blocks hold them exactly
};

/// `scales` and `biases` may be nullptr where the file has none. Messages name the tensor.
/// Errors: invalid_file for a tensor that is missing or of another type or shape.
Result<MlxGroups> match_mlx_groups(const MlxPacking& packing,
                                   const formats::SafetensorsTensor& codes,
                                   const formats::SafetensorsTensor* scales,
                                   const formats::SafetensorsTensor* biases);

/// Writes blocks of groups.dtype: `n` weights from number `first` on, within one row; both are
/// multiples of the block. Errors: invalid_file for a scale of the float modes that is no number.
Result<void> read_mlx_blocks(const MlxGroups& groups, std::int64_t first, std::int64_t n,
                             std::byte* out);

}  // namespace hearth::model
