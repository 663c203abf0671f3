#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/kernels/kernel_set.h"
#include "backend/cpu/thread_pool.h"
#include "backend/cpu/tile_cache.h"
#include "base/bytes.h"
#include "base/result.h"
#include "graph/value.h"
#include "tensor/buffer.h"

namespace hearth::backend::cpu {

/// A matrix as the kernels read it: native rows in the file mapping, or tiles
/// (backend/cpu/tile_fields.h) in memory of our own. Row r of either begins at r * row bytes, for
/// tiles if r is a multiple of panel_rows.
struct WeightMatrix {
  const std::byte* data;
  bool is_tiled;
};

/// The matrices of a session, turned into tiles where there is memory for that. Weights that have
/// to be made are made when they are asked for, and kept as they are only if they are read so. One
/// thread at a time.
class PackedWeights {
 public:
  /// `is_tiled` by WeightId. Weights that are kept get their data in `weights`.
  PackedWeights(graph::WeightTable& weights, const KernelSet& kernels, ThreadPool& pool,
                std::vector<bool> is_tiled)
      : weights_(weights),
        kernels_(kernels),
        pool_(pool),
        is_tiled_(std::move(is_tiled)),
        tiles_(weights.size()),
        rows_(weights.size()) {}

  /// The matrix of `weight`, or the matrices of all experts one after another; its tiles are made
  /// at the first call. Products will begin at multiples of `piece_rows` rows: tiles are made if
  /// those are whole panels, or the whole matrix. Errors: those of WeightOrigin::make. Throws
  /// std::bad_alloc.
  Result<WeightMatrix> matrix(graph::WeightId weight, std::int64_t piece_rows);
  /// Sees to it that the weight table has the data of `weight`. Errors and throws as matrix().
  Result<void> keep_rows(graph::WeightId weight);
  /// Bytes of the tiles in memory of our own, and of what was made and kept.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// Whether any tiles are in memory of our own, and not those of a cache.
  [[nodiscard]] bool has_made_tiles() const {
    return std::ranges::any_of(tiles_, [](const Buffer& tiles) { return tiles.size() > 0; });
  }

  /// From now on takes tiles from `cache`, where it has them. A few panels of each matrix that is
  /// in a file as it is are turned to compare. Errors: invalid_file, naming the tensor, when they
  /// are not those of these weights.
  Result<void> take_from(TileCache cache);
  /// All tiles that there are.
  [[nodiscard]] std::vector<MatrixTiles> all_tiles() const;

 private:
  /// The tiles of the rows from `row` on, up to a panel of them; `rows` are all of the tensor's.
  void turn_panel(const TensorView& tensor, Bytes rows, std::int64_t row, std::byte* tiles) const;
  Buffer make_tiles(const graph::Weight& weight, Bytes rows);
  /// The tiles that the cache has; empty without.
  [[nodiscard]] Bytes cached(const graph::Weight& weight) const {
    return cache_ ? cache_->find(weight) : Bytes();
  }

  graph::WeightTable& weights_;
  const KernelSet& kernels_;
  ThreadPool& pool_;
  std::vector<bool> is_tiled_;
  std::vector<Buffer> tiles_;  // by WeightId; empty where native, or mapped from the cache
  std::vector<Buffer> rows_;   // the same; empty where a file has them, or nobody reads them
  std::optional<TileCache> cache_;
  std::int64_t bytes_ = 0;
};

}  // namespace hearth::backend::cpu
