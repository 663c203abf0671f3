#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "model/huggingface/config.h"

namespace hearth::model {

/// Rows and columns of the blocks that share a scale.
struct Float8Blocks {
  std::int64_t rows = 128;
  std::int64_t columns = 128;
};

/// What config.json says of quantized weights; nullopt when they are not quantized.
/// Errors: unsupported for all but block-scaled FP8, naming the method.
Result<std::optional<Float8Blocks>> read_quantization(const Config& config);

}  // namespace hearth::model
