#include "find_model.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "base/fail.h"
#include "base/format.h"

namespace hearth::app {
namespace {

namespace fs = std::filesystem;

/// Letters and digits alone, in lower case (ASCII: names of model files are).
std::string simplified(std::string_view name) {
  std::string simple;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      simple += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      simple += c;
    }
  }
  return simple;
}

std::vector<fs::path> cached_models(const fs::path& cache) {
  std::vector<fs::path> files;
  std::error_code ignored;  // no folder, no models
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    if (entry.path().extension() == ".gguf") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string names_of(const std::vector<fs::path>& files) {
  std::string names;
  for (const auto& file : files) {
    names += (names.empty() ? "" : ", ") + file.filename().string();
  }
  return names.empty() ? "nothing" : names;
}

/// $XDG_CACHE_HOME/hearth/`name`, or below ~/.cache; empty when neither variable is set.
fs::path cache_folder(const char* name) {
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && *base != '\0') {
    return fs::path(base) / "hearth" / name;
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return fs::path(home) / ".cache" / "hearth" / name;
  }
  return {};
}

}  // namespace

fs::path model_cache() {
  return cache_folder("models");
}

Result<fs::path> tile_cache_file(const fs::path& model) {
  const auto folder = cache_folder("tiles");
  if (folder.empty()) {
    return fail(ErrorCode::not_found,
                "no folder for tiles: neither XDG_CACHE_HOME nor HOME is set");
  }
  std::error_code ignored;  // then the path stays as it is
  const auto place = std::hash<std::string>{}(fs::absolute(model, ignored).string());
  return folder / format("{}-{:016x}.tiles", model.filename().string(), place);
}

Result<fs::path> find_model(std::string_view model, const fs::path& cache) {
  std::error_code ignored;
  if (fs::exists(model, ignored) || model.find('/') != std::string_view::npos) {
    return fs::path(model);
  }
  if (cache.empty()) {
    return fail(ErrorCode::not_found,
                "model '{}': no such file, and no cache of models without $HOME", model);
  }
  const auto files = cached_models(cache);
  const auto name = simplified(model);
  std::vector<fs::path> matches;
  for (const auto& file : files) {
    if (!name.empty() && simplified(file.filename().string()).starts_with(name)) {
      matches.push_back(file);
    }
  }
  if (matches.size() > 1) {
    return fail(ErrorCode::invalid_argument, "model '{}' could be {}", model, names_of(matches));
  }
  if (matches.empty()) {
    return fail(ErrorCode::not_found,
                "model '{}': no such file, and no model of that name in {} (which has {})", model,
                cache.string(), names_of(files));
  }
  return matches.front();
}

}  // namespace hearth::app
