#include "formats/safetensors/index.h"

#include <nlohmann/json.hpp>

#include "formats/gguf/place.h"
#include "formats/json/parse.h"

namespace hearth::formats {
namespace {

constexpr std::string_view extension = ".safetensors";
constexpr std::size_t max_index_bytes = std::size_t{64} << 20;
constexpr std::size_t max_file_name = 255;

/// A name that stays in its folder on every system.
bool is_plain_name(std::string_view name) {
  return name.size() > extension.size() && name.size() <= max_file_name &&
         name.ends_with(extension) && name.front() != '.' &&
         name.find_first_of(std::string_view("/\\:\0", 4)) == std::string_view::npos;
}

}  // namespace

Result<SafetensorsIndex> read_safetensors_index(const std::filesystem::path& path) {
  const std::string file = path.string();
  HEARTH_ASSIGN(const auto document, read_json(path, max_index_bytes));
  const auto map = document.is_object() ? document.find("weight_map") : document.end();
  if (map == document.end() || !map->is_object()) {
    return fail(ErrorCode::invalid_file, "{}: expected an object \"weight_map\"", file);
  }
  SafetensorsIndex index;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string() || !is_plain_name(shard.get_ref<const std::string&>())) {
      return fail(
          ErrorCode::invalid_file,
          "{}: tensor {}: expected the plain name of a .safetensors file beside the index, "
          "found {}",
          file, in_quotes(tensor),
          shard.is_string() ? in_quotes(shard.get_ref<const std::string&>()) : "something else");
    }
    index.emplace(tensor, shard.get<std::string>());
  }
  return index;
}

}  // namespace hearth::formats
