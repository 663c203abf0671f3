#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "formats/gguf/metadata.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hearth::formats {

/// What the directory of a file says of a tensor.
struct DirectoryEntry {
  std::string_view name;
  DType dtype{};
  Shape shape;
  std::uint64_t offset{};  // from the start of the data section
};

/// The bytes of a version 3 file up to the padding before the data section: header, keys in the
/// order given, directory. Unit outer dimensions are dropped, as the format's own writers do.
std::string encode_head(std::span<const Metadata::Entry> keys,
                        std::span<const DirectoryEntry> directory);

}  // namespace hearth::formats
