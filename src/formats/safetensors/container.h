#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "formats/safetensors/element_type.h"

namespace hearth::formats {

/// A tensor of a safetensors file, borrowed from its bytes and checked: the type is known, shape
/// and data agree, the data lies inside the file.
struct SafetensorsTensor {
  std::string name;  // any text: never a path
  ElementType type{};
  std::vector<std::int64_t> shape;  // outermost first; empty for one number; may hold zeros
  Bytes data;                       // at any alignment
  std::uint64_t offset{};           // of the data in its file
  std::uint32_t shard{};            // which file of a split model
};

/// One safetensors file by itself.
struct SafetensorsContainer {
  std::vector<SafetensorsTensor> tensors;           // in the order of their data
  std::map<std::string, std::string> metadata;      // "__metadata__"
  std::map<std::string_view, std::size_t> by_name;  // into `tensors`
};

/// Reads and checks a whole file (docs/formats/safetensors.md). The result borrows `bytes`; `file`
/// names them in messages. Time O(n log n) in the number of tensors, memory bounded by a small
/// multiple of the header. Errors: invalid_file; unsupported for an element type that is not known.
Result<SafetensorsContainer> parse_safetensors(Bytes bytes, const std::string& file);

}  // namespace hearth::formats
