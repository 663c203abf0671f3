#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "formats/safetensors/container.h"

namespace hearth::formats {

/// The tensors of a folder of safetensors files; their data stays in the mapped files.
/// Everything it hands out lives as long as it (moving it is fine). Reading is thread-safe.
class SafetensorsModel {
 public:
  /// Maps `model.safetensors.index.json` with the files it names, else `model.safetensors`.
  /// Tensors of those files that the index does not name are left out.
  /// Errors: not_found and io for the files, invalid_file for every broken rule of
  /// docs/formats/safetensors.md, unsupported for element types that are not known.
  static Result<SafetensorsModel> open(const std::filesystem::path& folder);

  /// By file, then in the order of their data.
  [[nodiscard]] std::span<const SafetensorsTensor> tensors() const { return tensors_; }
  /// nullptr when there is none of this name.
  [[nodiscard]] const SafetensorsTensor* find(std::string_view name) const;

  [[nodiscard]] std::span<const std::string> shard_names() const { return shard_names_; }
  [[nodiscard]] const std::string& shard_name(std::uint32_t shard) const {
    return shard_names_[shard];
  }

 private:
  SafetensorsModel() = default;
  Result<void> add_shard(const std::filesystem::path& path, std::span<const std::string> wanted);

  std::vector<SafetensorsTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<std::string> shard_names_;
  std::vector<MappedFile> mappings_;
};

}  // namespace hearth::formats
