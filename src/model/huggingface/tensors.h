#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/safetensors/reader.h"
#include "model/checkpoint.h"
#include "model/huggingface/config.h"
#include "model/huggingface/family.h"

namespace hearth::model {

/// The canonical tensors of a folder.
struct FolderTensors {
  std::vector<CheckpointTensor> tensors;  // token table, norm and head, then layer by layer
  std::int64_t n_draft_layers = 0;        // of the multi-token-prediction head
  bool is_mlx = false;                    // some are MLX's groups
  std::vector<std::string> notes;         // what was left out or changed, a sentence each
};

/// Applies the tables of the family. Borrows the data of `files`.
/// Errors: invalid_file for a tensor that is missing or of another shape, unsupported for a tensor
/// that no table names and for a quantization other than block-scaled FP8 and MLX's.
Result<FolderTensors> read_tensors(const formats::SafetensorsModel& files, const Config& config,
                                   const Family& family, const Dimensions& dimensions,
                                   ExpertLayout experts);

/// The same for a folder that holds nothing but a multi-token-prediction head, as mlx-vlm splits
/// one off: names without "mtp.", in MLX's layout. Gives the block behind the trunk of
/// `dimensions`.
Result<FolderTensors> read_draft_tensors(const formats::SafetensorsModel& files,
                                         const Config& config, const Family& family,
                                         const Dimensions& dimensions);

}  // namespace hearth::model
