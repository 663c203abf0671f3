#include "formats/gguf/split.h"

#include "formats/gguf/place.h"

namespace hearth::formats {

Result<std::optional<Split>> read_split(const Metadata& metadata) {
  HEARTH_ASSIGN(const auto count, metadata.find<std::uint16_t>(split_count_key));
  if (!count) {
    return std::optional<Split>();
  }
  if (*count == 0 || *count > max_shards) {
    return invalid(metadata.place_of(split_count_key), "expected 1 to {} shards, found {}",
                   max_shards, *count);
  }
  Split split{.count = *count};
  HEARTH_ASSIGN(split.number, metadata.get<std::uint16_t>(split_number_key));
  HEARTH_ASSIGN(split.n_tensors, metadata.get<std::uint32_t>(split_tensors_key));
  return std::optional(split);
}

std::string shard_name(std::string_view prefix, std::uint32_t number, std::uint32_t count) {
  return format("{}-{:05}-of-{:05}.gguf", prefix, number + 1, count);
}

Result<std::filesystem::path> shard_prefix(const std::filesystem::path& first,
                                           std::uint32_t count) {
  const auto name = first.filename().string();
  const auto suffix = shard_name("", 0, count);
  if (!name.ends_with(suffix)) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected the name of the first of {} shards to end in {}", first.string(),
                count, suffix);
  }
  return first.parent_path() / name.substr(0, name.size() - suffix.size());
}

}  // namespace hearth::formats
