#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "formats/gguf/container.h"
#include "formats/gguf/metadata.h"
#include "formats/gguf/tensor.h"

namespace hearth::formats {

/// A GGUF model: metadata and a directory of tensors whose data stays in the mapped file.
/// Everything it hands out lives as long as it (moving it is fine). Reading is thread-safe.
class GgufFile {
 public:
  /// Maps the file and, for a split model, its other shards; `path` names the first.
  /// Errors: not_found and io for the files, invalid_file for every broken rule of
  /// docs/formats/gguf.md, unsupported for versions and tensor types that nothing here can read,
  /// invalid_argument for a shard that is not the first.
  static Result<GgufFile> open(const std::filesystem::path& path);

  /// A single file in memory, which the result borrows; `name` is what messages call it.
  static Result<GgufFile> parse(Bytes bytes, std::string name);

  /// Of the first shard, which carries it all.
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  /// In the order of the file, shard after shard.
  [[nodiscard]] std::span<const GgufTensor> tensors() const { return tensors_; }
  /// nullptr when there is none of this name.
  [[nodiscard]] const GgufTensor* find(std::string_view name) const;

  /// Of the first shard.
  [[nodiscard]] std::uint32_t version() const { return version_; }
  [[nodiscard]] std::uint32_t alignment() const { return alignment_; }
  [[nodiscard]] std::size_t n_shards() const { return shard_names_.size(); }
  [[nodiscard]] const std::string& shard_name(std::uint32_t shard) const {
    return shard_names_[shard];
  }

 private:
  explicit GgufFile(Container first, std::string name);
  Result<void> add_shard(Container shard, std::string name);

  std::uint32_t version_{};
  std::uint32_t alignment_{};
  Metadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, std::size_t> by_name_;
  std::vector<std::string> shard_names_;
  std::vector<MappedFile> mappings_;
};

}  // namespace hearth::formats
