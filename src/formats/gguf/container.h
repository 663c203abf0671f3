#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "formats/gguf/tensor.h"

namespace hearth::formats {

/// One GGUF file by itself: what its bytes say, before the shards of a split model are joined.
struct Container {
  std::uint32_t version{};
  std::uint32_t alignment{};
  Metadata metadata;
  std::vector<GgufTensor> tensors;                  // in the order of the file
  std::map<std::string_view, std::size_t> by_name;  // into `tensors`
};

/// Reads and checks a whole file (all rules of docs/formats/gguf.md that need no other file).
/// The result borrows `bytes`; `file` names them in messages. Time O(n log n) in the number of keys
/// and tensors, memory bounded by a small multiple of the bytes before the tensor data.
/// Errors: invalid_file; unsupported for other versions, big-endian files and unknown tensor types.
Result<Container> parse_container(Bytes bytes, const std::string& file);

}  // namespace hearth::formats
