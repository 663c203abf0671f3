#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/kernels/kernel_set.h"
#include "backend/cpu/thread_pool.h"
#include "backend/cpu/tile_cache.h"
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

/// The matrices of a session, turned into tiles where there is memory for that. One thread at a
/// time.
class PackedWeights {
 public:
  /// `is_tiled` by WeightId.
  PackedWeights(const graph::WeightTable& weights, const KernelSet& kernels, ThreadPool& pool,
                std::vector<bool> is_tiled)
      : weights_(weights),
        kernels_(kernels),
        pool_(pool),
        is_tiled_(std::move(is_tiled)),
        tiles_(weights.size()) {}

  /// The matrix of `weight`, or the matrices of all experts one after another; its tiles are made
  /// at the first call. Products will begin at multiples of `piece_rows` rows: tiles are made if
  /// those are whole panels, or the whole matrix. Throws std::bad_alloc.
  WeightMatrix matrix(graph::WeightId weight, std::int64_t piece_rows);
  /// Bytes of the tiles in memory of our own.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  /// From now on takes tiles from `cache`, where it has them. A few panels of each matrix are
  /// turned to compare. Errors: invalid_file, naming the tensor, when they are not those of these
  /// weights.
  Result<void> take_from(TileCache cache);
  /// All tiles that there are.
  [[nodiscard]] std::vector<MatrixTiles> all_tiles() const;

 private:
  /// The tiles of the rows from `row` on, up to a panel of them.
  void turn_panel(const TensorView& tensor, std::int64_t row, std::byte* tiles) const;
  Buffer make_tiles(const graph::Weight& weight);

  const graph::WeightTable& weights_;
  const KernelSet& kernels_;
  ThreadPool& pool_;
  std::vector<bool> is_tiled_;
  std::vector<Buffer> tiles_;  // by WeightId; empty where native, or mapped from the cache
  std::optional<TileCache> cache_;
  std::int64_t bytes_ = 0;
};

}  // namespace hearth::backend::cpu
