#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace hearth::app {

/// The folder that ./run keeps fetched models in: $XDG_CACHE_HOME/hearth/models, or below
/// ~/.cache. Empty when neither variable is set.
std::filesystem::path model_cache();

/// The file for the tiles of a model (backend/cpu/tile_cache.h), in the folder beside
/// model_cache(). Errors: not_found when there is no such folder.
Result<std::filesystem::path> tile_cache_file(const std::filesystem::path& model);

/// The file that MODEL on the command line means: a path, or the beginning of the name of one file
/// in `cache`, where case and punctuation do not count: "gemma3" finds "gemma-3-270m-q4_k_m.gguf".
/// Errors: not_found, with what is there; invalid_argument when several files match.
Result<std::filesystem::path> find_model(std::string_view model,
                                         const std::filesystem::path& cache);

}  // namespace hearth::app
