#pragma once
/// A file that keeps the tiles of a model's matrices, so that a later start maps them instead of
/// turning the matrices again.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "graph/value.h"

namespace hearth::backend::cpu {

/// Tells one state of a model's files from another: their sizes, times of last change, and first
/// mebibytes. Errors: io, naming the file.
Result<std::uint64_t> model_key(std::span<const std::filesystem::path> files);

/// The tiles of one matrix, or of the matrices of all experts.
struct MatrixTiles {
  const graph::Weight* weight;
  Bytes tiles;
};

/// A mapped file of tiles. Immutable, hence thread-safe.
class TileCache {
 public:
  /// Errors: not_found when there is no such file; invalid_file when it is damaged, cut short, from
  /// a version with another layout of tiles, or from another state of the model's files.
  static Result<TileCache> open(const std::filesystem::path& path, std::uint64_t model);

  /// Writes such a file, which appears when it is complete. Errors: io.
  static Result<void> write(const std::filesystem::path& path, std::uint64_t model,
                            std::span<const MatrixTiles> matrices);

  /// The tiles of a matrix; empty where the file has none of that name, type and shape.
  [[nodiscard]] Bytes find(const graph::Weight& weight) const;

 private:
  /// How a matrix is listed in the file.
  struct Entry {
    std::uint64_t name;  // hash
    std::uint64_t dtype;
    std::int64_t n_rows;
    std::int64_t n_in;
    std::uint64_t offset;  // in the file
    std::uint64_t n_bytes;

    [[nodiscard]] bool is_of(const graph::Weight& weight) const;
  };
  static Entry entry_of(const MatrixTiles& matrix, std::uint64_t offset);

  explicit TileCache(MappedFile file) : file_(std::move(file)) {}
  Result<void> read(const std::filesystem::path& path, std::uint64_t model);

  MappedFile file_;
  std::vector<Entry> entries_;
};

}  // namespace hearth::backend::cpu
