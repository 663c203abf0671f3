#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "model/huggingface/config.h"
#include "model/huggingface/mlx_quantization.h"

namespace hearth::model {

/// Rows and columns of the blocks that share a scale.
struct Float8Blocks {
  std::int64_t rows = 128;
  std::int64_t columns = 128;
};

/// What config.json says of quantized weights: at most one of the two.
struct Quantization {
  std::optional<Float8Blocks> float8;
  std::optional<MlxQuantization> mlx;
};

/// Errors: unsupported for all but block-scaled FP8 and MLX's, naming the method; those of
/// read_mlx_quantization.
Result<Quantization> read_quantization(const Config& config);

}  // namespace hearth::model
