#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/checkpoint.h"
#include "tensor/dtype.h"

namespace hearth::model {

/// The types that weights can be stored in here, for messages: "bf16, f16, f32, q8_0".
std::string names_of_target_types();
/// Errors: invalid_argument, with the list of known ones.
Result<DType> find_target_type(std::string_view name);

struct ConvertReport {
  std::size_t n_tensors = 0;
  std::int64_t n_weights = 0;
  std::int64_t tensor_bytes = 0;
};

/// Told the bytes of tensor data written so far and in all; false stops the conversion.
using ConvertProgress = std::function<bool(std::int64_t done, std::int64_t total)>;

/// Writes a checkpoint as one GGUF file, tensor by tensor, in memory of a few megabytes. `type` is
/// that of the weights, nullopt leaves each as it is; is_always_f32() tensors are F32 in any case.
/// MLX's groups become Q4_1 or Q5_1 where those have the same weights (quant/affine.h). What GGUF
/// has no blocks for becomes F16: other groups, and rows that are no whole blocks of `type`, as
/// with llama.cpp's converter. The file appears under its name only when it is complete. Errors:
/// cancelled; io; invalid_file for weights that cannot be read or that the type cannot hold; those
/// of write_gguf.
Result<ConvertReport> convert_to_gguf(const Checkpoint& checkpoint,
                                      const std::filesystem::path& path, std::optional<DType> type,
                                      const ConvertProgress& progress);

}  // namespace hearth::model
