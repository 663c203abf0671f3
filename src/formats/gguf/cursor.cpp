#include "formats/gguf/cursor.h"

namespace hearth::formats {

Result<Bytes> Cursor::read_bytes(std::uint64_t n_bytes, std::string_view what) {
  last_ = offset_;
  if (n_bytes > remaining()) {
    return invalid(place(), "expected {} ({} bytes), found the end of the file after {} bytes",
                   what, n_bytes, remaining());
  }
  offset_ += n_bytes;
  return since(last_);
}

Result<std::string_view> Cursor::read_string(std::uint64_t max_bytes, std::string_view what) {
  HEARTH_ASSIGN(const auto length, read<std::uint64_t>(what));
  if (length > max_bytes) {
    return invalid(place(), "expected {} of at most {} bytes, found a length of {}", what,
                   max_bytes, length);
  }
  HEARTH_ASSIGN(const Bytes bytes, read_bytes(length, what));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace hearth::formats
