#pragma once
/// Models split over several files: `<prefix>-00001-of-00003.gguf`, see docs/formats/gguf.md.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/gguf/metadata.h"

namespace hearth::formats {

inline constexpr std::string_view split_number_key = "split.no";
inline constexpr std::string_view split_count_key = "split.count";
inline constexpr std::string_view split_tensors_key = "split.tensors.count";

/// Far above any known model, far below what the 16-bit field could ask for.
inline constexpr std::uint16_t max_shards = 4096;

/// The three keys of every shard.
struct Split {
  std::uint16_t number = 0;     // of this shard, from 0
  std::uint16_t count = 1;      // of shards
  std::uint32_t n_tensors = 0;  // in all shards together

  bool operator==(const Split&) const = default;
};

/// nullopt when the file is no shard. Errors: invalid_file when a key is missing, of another type,
/// or out of bounds.
Result<std::optional<Split>> read_split(const Metadata& metadata);

/// "<prefix>-00001-of-00003.gguf" for number 0 of 3.
std::string shard_name(std::string_view prefix, std::uint32_t number, std::uint32_t count);

/// The <prefix> of the path of shard 0 of `count`. Errors: invalid_argument when the name does not
/// have that form.
Result<std::filesystem::path> shard_prefix(const std::filesystem::path& first, std::uint32_t count);

}  // namespace hearth::formats
