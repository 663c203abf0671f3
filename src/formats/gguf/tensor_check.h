#pragma once

#include <string_view>

#include "base/result.h"
#include "formats/gguf/tensor.h"

namespace hearth::formats {

/// Decodes a whole tensor and refuses weights that are NaN or infinite, which is what a broken
/// scale of a block format becomes. Integer tensors pass: only their user knows their range.
/// Reads every byte of the data, so it is for `--check-tensors` and not for every load.
/// Errors: invalid_file; `file` is the name that the message starts with.
Result<void> check_tensor_data(const GgufTensor& tensor, std::string_view file);

}  // namespace hearth::formats
