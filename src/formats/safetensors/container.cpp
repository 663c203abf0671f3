#include "formats/safetensors/container.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "formats/gguf/place.h"
#include "formats/json/parse.h"

namespace hearth::formats {
namespace {

using nlohmann::json;

constexpr std::uint64_t length_bytes = 8;          // the u64 before the header
constexpr std::uint64_t max_header = 100'000'000;  // as the reference implementation has it
constexpr std::size_t max_tensors_of_file = 1 << 20;
constexpr std::size_t max_dims = 8;
constexpr std::size_t max_name_bytes = 4096;
constexpr std::size_t header_depth = 3;  // header, tensor, shape
constexpr std::uint64_t max_number = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view metadata_name = "__metadata__";

/// The header's text and what follows it.
struct Parts {
  std::string_view header;
  Bytes data;
  std::uint64_t data_offset{};
};

Result<Parts> split(Bytes bytes, std::string_view file) {
  const Place place{file, "header", {}, 0};
  if (bytes.size() < length_bytes) {
    return invalid(place, "expected {} bytes of length, found a file of {}", length_bytes,
                   bytes.size());
  }
  const auto length = load<std::uint64_t>(bytes.data());
  const auto limit = std::min<std::uint64_t>(max_header, bytes.size() - length_bytes);
  if (length < 2 || length > limit) {
    return invalid(place, "expected a length from 2 to {} in a file of this size, found {}", limit,
                   length);
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + length_bytes, length);
  // Writers pad with spaces and nothing else.
  if (text.front() != '{' || text[text.find_last_not_of(' ')] != '}') {
    return invalid(place, "expected a JSON object, padded with spaces at its end alone, found {}",
                   in_quotes(text));
  }
  return Parts{text, bytes.subspan(length_bytes + length), length_bytes + length};
}

/// A list of integers from 0 to 2^63 - 1.
Result<std::vector<std::int64_t>> read_numbers(const json& entry, const char* key,
                                               const Place& place) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array() || found->size() > max_dims) {
    return invalid(place, "expected \"{}\" to be a list of at most {} numbers", key, max_dims);
  }
  std::vector<std::int64_t> numbers;
  for (const json& number : *found) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > max_number) {
      return invalid(place, "expected \"{}\" to hold integers from 0 to 2^63 - 1", key);
    }
    numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

Result<ElementType> read_type(const json& entry, const Place& place) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string()) {
    return invalid(place, "expected \"dtype\" to be a string");
  }
  const auto& name = found->get_ref<const std::string&>();
  const ElementTypeInfo* type = find_element_type(name);
  if (type == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected a known dtype, found {}", to_string(place),
                in_quotes(name));
  }
  return type->type;
}

/// Bytes that `shape` takes; nullopt when they do not fit in 63 bits. A zero does not excuse the
/// other dimensions.
std::optional<std::int64_t> size_of(ElementType type, std::span<const std::int64_t> shape) {
  std::optional product(static_cast<std::int64_t>(info(type).n_bytes));
  for (const std::int64_t dim : shape) {
    product = product ? checked_mul(*product, std::max<std::int64_t>(dim, 1)) : std::nullopt;
  }
  const bool is_empty = std::ranges::find(shape, 0) != shape.end();
  return product && is_empty ? 0 : product;
}

Result<SafetensorsTensor> read_tensor(const std::string& name, const json& entry,
                                      const Parts& parts, std::string_view file) {
  const Place place{file, "tensor", name, length_bytes};
  if (name.size() > max_name_bytes) {
    return invalid(place, "expected a name of at most {} bytes, found {}", max_name_bytes,
                   name.size());
  }
  if (!entry.is_object() || entry.size() != 3) {
    return invalid(place, "expected an object of dtype, shape and data_offsets");
  }
  SafetensorsTensor tensor{.name = name};
  HEARTH_ASSIGN(tensor.type, read_type(entry, place));
  HEARTH_ASSIGN(tensor.shape, read_numbers(entry, "shape", place));
  HEARTH_ASSIGN(const auto offsets, read_numbers(entry, "data_offsets", place));
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      std::cmp_greater(offsets[1], parts.data.size())) {
    return invalid(place, "expected two data_offsets, ascending, of at most {}", parts.data.size());
  }
  const auto n_bytes = size_of(tensor.type, tensor.shape);
  if (!n_bytes) {
    return invalid(place, "expected fewer than 2^63 bytes, found a larger shape");
  }
  if (*n_bytes != offsets[1] - offsets[0]) {
    return invalid(place, "expected {} bytes for its shape and dtype, found {}", *n_bytes,
                   offsets[1] - offsets[0]);
  }
  tensor.data =
      parts.data.subspan(static_cast<std::size_t>(offsets[0]), static_cast<std::size_t>(*n_bytes));
  tensor.offset = parts.data_offset + static_cast<std::uint64_t>(offsets[0]);
  return tensor;
}

Result<std::map<std::string, std::string>> read_metadata(const json& entry, std::string_view file) {
  const Place place{file, "header", metadata_name, length_bytes};
  std::map<std::string, std::string> metadata;
  if (!entry.is_object()) {
    return invalid(place, "expected an object of strings");
  }
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      return invalid(place, "expected {} to be a string", in_quotes(key));
    }
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

/// Data covers the whole section, without gaps and overlaps.
Result<void> check_cover(std::span<const SafetensorsTensor> tensors, const Parts& parts,
                         std::string_view file) {
  std::uint64_t end = parts.data_offset;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.offset != end) {
      return invalid(Place{file, "tensor", tensor.name, tensor.offset},
                     "expected its data right after the data before it, at byte {}", end);
    }
    end += tensor.data.size();
  }
  const std::uint64_t size = parts.data_offset + parts.data.size();
  if (end != size) {
    return invalid(Place{file, "header", {}, length_bytes},
                   "expected tensors up to the end of the file at byte {}, found them end at {}",
                   size, end);
  }
  return {};
}

}  // namespace

Result<SafetensorsContainer> parse_safetensors(Bytes bytes, const std::string& file) {
  HEARTH_ASSIGN(const Parts parts, split(bytes, file));
  HEARTH_ASSIGN(const json header, parse_json(parts.header, file, {.max_depth = header_depth}));
  if (header.size() > max_tensors_of_file) {
    return invalid(Place{file, "header", {}, length_bytes}, "expected at most {} tensors, found {}",
                   max_tensors_of_file, header.size());
  }
  SafetensorsContainer container;
  container.tensors.reserve(header.size());
  for (const auto& [name, entry] : header.items()) {
    if (name == metadata_name) {
      HEARTH_ASSIGN(container.metadata, read_metadata(entry, file));
    } else {
      HEARTH_ASSIGN(container.tensors.emplace_back(), read_tensor(name, entry, parts, file));
    }
  }
  // Empty tensors come before the one whose data begins at the same byte.
  std::ranges::sort(container.tensors, [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.data.size()) < std::pair(b.offset, b.data.size());
  });
  HEARTH_TRY(check_cover(container.tensors, parts, file));
  for (std::size_t i = 0; i < container.tensors.size(); ++i) {
    container.by_name.emplace(container.tensors[i].name, i);
  }
  return container;
}

}  // namespace hearth::formats
