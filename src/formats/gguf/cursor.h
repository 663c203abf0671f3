#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"
#include "base/result.h"
#include "formats/gguf/place.h"

namespace hearth::formats {

/// Reads a file from front to back and never past its end.
/// Errors are invalid_file and name the place and what was being read.
class Cursor {
 public:
  /// Borrows both.
  Cursor(Bytes bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  /// Says what is read from here on, for messages.
  void enter(std::string_view kind, std::string_view name = {}) {
    kind_ = kind;
    name_ = name;
  }

  /// The place of what was read last.
  [[nodiscard]] Place place() const { return {file_, kind_, name_, last_}; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint64_t remaining() const { return bytes_.size() - offset_; }
  /// The bytes from `begin` (an earlier offset()) to here.
  [[nodiscard]] Bytes since(std::uint64_t begin) const {
    return bytes_.subspan(begin, offset_ - begin);
  }

  Result<Bytes> read_bytes(std::uint64_t n_bytes, std::string_view what);
  /// u64 length, then that many bytes; any bytes are accepted.
  Result<std::string_view> read_string(std::uint64_t max_bytes, std::string_view what);

  template <class T>
    requires std::is_arithmetic_v<T>
  Result<T> read(std::string_view what) {
    HEARTH_ASSIGN(const Bytes bytes, read_bytes(sizeof(T), what));
    return load<T>(bytes.data());
  }

 private:
  Bytes bytes_;
  std::string_view file_;
  std::string_view kind_;
  std::string_view name_;
  std::size_t offset_ = 0;
  std::size_t last_ = 0;
};

}  // namespace hearth::formats
