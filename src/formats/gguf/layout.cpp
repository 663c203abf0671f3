#include "formats/gguf/layout.h"

#include <algorithm>
#include <bit>

#include "formats/gguf/place.h"

namespace hearth::formats {

Result<std::uint32_t> alignment_of(const Metadata& metadata) {
  HEARTH_ASSIGN(const auto stored, metadata.find<std::uint32_t>(alignment_key));
  const auto alignment = stored.value_or(default_alignment);
  if (!std::has_single_bit(alignment) || alignment < min_alignment || alignment > max_alignment) {
    return invalid(metadata.place_of(alignment_key),
                   "expected a power of two from {} to {}, found {}", min_alignment, max_alignment,
                   alignment);
  }
  return alignment;
}

bool is_valid_key(std::string_view key) {
  return !key.empty() && key.size() <= max_key_length &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

}  // namespace hearth::formats
