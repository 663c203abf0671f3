#pragma once
/// How the data of a canonical tensor comes from tensors of a folder.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf/writer.h"
#include "formats/safetensors/container.h"
#include "model/checkpoint.h"
#include "model/huggingface/mlx_groups.h"
#include "tensor/dtype.h"

namespace hearth::model {

/// A tensor of the folder and, if it is block-scaled FP8, the scales of its blocks:
/// weight[row, column] = fp8 * scale[row / block_rows, column / block_columns].
struct GatherSource {
  const formats::SafetensorsTensor* tensor{};
  const formats::SafetensorsTensor* scales{};  // nullptr when it has none
  std::int64_t block_rows = 0;
  std::int64_t block_columns = 0;
  std::optional<MlxGroups> groups{};  // if MLX quantized it; `tensor` holds the codes

  /// Of the weights, outermost first.
  [[nodiscard]] const std::vector<std::int64_t>& shape() const;
  [[nodiscard]] std::int64_t n_elements() const;
  /// What the weights are where nothing changes them.
  [[nodiscard]] DType dtype() const;
};

/// A canonical tensor in the making: the rows of the sources, one source after the other, in
/// another order, each element perhaps changed. What a *row* is, the transform chooses: any run of
/// elements within a row of the matrix.
struct Gather {
  std::string from;                   // for messages: the name in the folder
  std::vector<GatherSource> sources;  // all of one type and shape
  std::vector<std::int64_t> shape;    // of the result, outermost first
  DType dtype{};                      // of the result
  std::int64_t row_length = 0;        // elements
  /// The row of the sources that row `row` of the result is; absent: the same.
  std::function<std::int64_t(std::int64_t row)> source_row;
  /// What becomes of each element, in f32; nullptr: itself. Only with the result type f32.
  float (*change)(float) = nullptr;

  [[nodiscard]] std::int64_t n_rows() const;
};

/// The tensor `name`: a view of the file where nothing changes, else a recipe that makes 1 MiB at a
/// time. Borrows the data of the sources. `file` is what messages call the file.
/// Errors: unsupported for more than four dimensions, or none, and for an order that takes blocks
/// apart.
Result<CheckpointTensor> finish(Gather gather, std::string name, std::string file);

}  // namespace hearth::model
