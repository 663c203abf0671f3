#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/result.h"

namespace hearth {

/// A file written front to back beside its final name, so that a reader never sees half of it.
/// Without commit() the destructor removes what was written. Move-only.
class OutputFile {
 public:
  /// Errors of all members: io, naming the path.
  static Result<OutputFile> create(const std::filesystem::path& path);
  /// The same for a file that other processes may be writing too: the last to commit stays.
  static Result<OutputFile> create_beside_others(const std::filesystem::path& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Result<void> write(Bytes bytes);
  /// Writes zeros up to a multiple of `alignment`.
  Result<void> pad(std::uint64_t alignment);
  /// Ends writing: after this only the name is missing.
  Result<void> close();
  /// Gives the closed file its final name, replacing what was there.
  Result<void> commit();

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path temporary);
  static Result<OutputFile> open(OutputFile file);

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once nothing is left to remove
  std::ofstream stream_;
  std::uint64_t size_ = 0;
};

}  // namespace hearth
