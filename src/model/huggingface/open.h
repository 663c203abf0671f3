#pragma once

#include <filesystem>

#include "base/result.h"
#include "model/checkpoint.h"

namespace hearth::model {

/// A folder as Hugging Face's transformers saves one: config.json, safetensors files, the
/// tokenizer's files (docs/formats/huggingface.md). Nothing is copied: tensors that differ from the
/// canonical ones are made when they are asked for.
/// Errors: those of the files; invalid_file for contents that contradict themselves; unsupported
/// for a model type, a quantization, a tokenizer or a tensor that nothing here knows, and always in
/// a build without nlohmann-json.
Result<Checkpoint> open_huggingface_folder(const std::filesystem::path& folder,
                                           ExpertLayout experts);

}  // namespace hearth::model
