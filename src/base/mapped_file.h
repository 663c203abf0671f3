#pragma once

#include <cstddef>
#include <filesystem>

#include "base/bytes.h"
#include "base/result.h"

namespace hearth {

/// A whole file mapped read-only. Move-only; the bytes stay valid until destruction.
/// A file that another process truncates meanwhile faults on access (SIGBUS): a documented risk of
/// mapping.
class MappedFile {
 public:
  /// Errors: not_found, io (unreadable, a folder, or the mapping failed), each naming the path.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  explicit MappedFile(Bytes bytes) : bytes_(bytes) {}

  Bytes bytes_;
};

}  // namespace hearth
