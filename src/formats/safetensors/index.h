#pragma once
/// Models split over several safetensors files, see docs/formats/safetensors.md.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hearth::formats {

inline constexpr std::string_view safetensors_single_name = "model.safetensors";
inline constexpr std::string_view safetensors_index_name = "model.safetensors.index.json";

/// Which file of the same folder holds which tensor. File names have been checked: they are plain
/// names, without a path.
using SafetensorsIndex = std::map<std::string, std::string>;

/// Errors: those of the file; invalid_file for every broken rule.
Result<SafetensorsIndex> read_safetensors_index(const std::filesystem::path& path);

}  // namespace hearth::formats
