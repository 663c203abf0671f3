#include "formats/safetensors/reader.h"

#include <system_error>
#include <utility>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "formats/safetensors/index.h"

namespace hearth::formats {
namespace {

constexpr std::size_t max_shards_of_folder = 4096;

/// File name to the tensors that it has to hold.
using Shards = std::map<std::string, std::vector<std::string>>;

Result<Shards> read_index(const std::filesystem::path& path) {
  HEARTH_ASSIGN(const auto index, read_safetensors_index(path));
  Shards shards;
  for (const auto& [tensor, file] : index) {
    shards[file].push_back(tensor);
  }
  if (shards.empty() || shards.size() > max_shards_of_folder) {
    return fail(ErrorCode::invalid_file, "{}: expected 1 to {} files, found {}", path.string(),
                max_shards_of_folder, shards.size());
  }
  return shards;
}

}  // namespace

Result<SafetensorsModel> SafetensorsModel::open(const std::filesystem::path& folder) {
  SafetensorsModel model;
  const auto index = folder / safetensors_index_name;
  std::error_code ignored;  // a folder that cannot be read is one without the file
  if (!std::filesystem::exists(index, ignored)) {
    HEARTH_TRY(model.add_shard(folder / safetensors_single_name, {}));
    return model;
  }
  HEARTH_ASSIGN(const auto shards, read_index(index));
  for (const auto& [file, tensors] : shards) {
    HEARTH_TRY(model.add_shard(folder / file, tensors));
  }
  return model;
}

/// Takes the wanted tensors of a file; all of them when none are named.
Result<void> SafetensorsModel::add_shard(const std::filesystem::path& path,
                                         std::span<const std::string> wanted) {
  HEARTH_ASSIGN(auto mapping, MappedFile::open(path));
  HEARTH_ASSIGN(auto container, parse_safetensors(mapping.bytes(), path.string()));
  std::vector<bool> is_wanted(container.tensors.size(), wanted.empty());
  for (const auto& name : wanted) {
    const auto found = container.by_name.find(name);
    if (found == container.by_name.end()) {
      return fail(ErrorCode::invalid_file, "{}: expected tensor {}, which {} puts here",
                  path.string(), in_quotes(name), safetensors_index_name);
    }
    is_wanted[found->second] = true;
  }
  for (std::size_t i = 0; i < container.tensors.size(); ++i) {
    if (is_wanted[i]) {
      SafetensorsTensor& tensor = container.tensors[i];
      tensor.shard = static_cast<std::uint32_t>(shard_names_.size());
      by_name_.emplace(tensor.name, tensors_.size());
      tensors_.push_back(std::move(tensor));
    }
  }
  shard_names_.push_back(path.string());
  mappings_.push_back(std::move(mapping));
  return {};
}

const SafetensorsTensor* SafetensorsModel::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace hearth::formats
