#include "backend/cpu/packed_weights.h"

#include <algorithm>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory_advice.h"
#include "quant/registry.h"

namespace hearth::backend::cpu {
namespace {

constexpr std::int64_t piece_bytes = 4 << 20;

std::int64_t row_bytes_of(const TensorView& tensor) {
  return quant::row_bytes(tensor.dtype, tensor.shape.back());
}

std::int64_t tile_bytes_of(const TensorView& tensor) {
  return round_up(tensor.shape.n_rows(), panel_rows) * row_bytes_of(tensor);
}

}  // namespace

void PackedWeights::turn_panel(const TensorView& tensor, Bytes rows, std::int64_t row,
                               std::byte* tiles) const {
  const std::int64_t row_bytes = row_bytes_of(tensor);
  kernels_.interleave[static_cast<std::size_t>(tensor.dtype)](
      rows.data() + row * row_bytes, row_bytes, std::min(panel_rows, tensor.shape.n_rows() - row),
      tensor.shape.back(), tiles);
}

Buffer PackedWeights::make_tiles(const graph::Weight& weight, Bytes rows) {
  const TensorView& tensor = weight.tensor;
  const std::int64_t row_bytes = row_bytes_of(tensor);
  const std::int64_t n_rows = tensor.shape.n_rows();
  Buffer tiles(tile_bytes_of(tensor));
  advise_huge_pages(tiles.bytes());
  // Each thread turns about the panels that it will also read, so that their pages are near it, and
  // drops the file's pages piece by piece, so that not even one matrix is there twice.
  const std::int64_t piece = std::max<std::int64_t>(1, piece_bytes / (panel_rows * row_bytes));
  pool_.run([&](const Worker& worker) {
    const auto share = worker.share(ceil_div(n_rows, panel_rows));
    for (std::int64_t begin = share.begin; begin < share.end; begin += piece) {
      const std::int64_t end = std::min(begin + piece, share.end);
      for (std::int64_t panel = begin; panel < end; ++panel) {
        const std::int64_t row = panel * panel_rows;
        turn_panel(tensor, rows, row, tiles.bytes().data() + row * row_bytes);
      }
      if (weight.origin.is_mapped) {
        const std::int64_t first = begin * panel_rows;
        const std::int64_t n = std::min(end * panel_rows, n_rows) - first;
        drop_mapped_pages(rows.subspan(static_cast<std::size_t>(first * row_bytes),
                                       static_cast<std::size_t>(n * row_bytes)));
      }
    }
  });
  return tiles;
}

Result<WeightMatrix> PackedWeights::matrix(graph::WeightId id, std::int64_t piece_rows) {
  const graph::Weight& weight = weights_[graph::index(id)];
  const TensorView& tensor = weight.tensor;
  const bool has_whole_panels = piece_rows == tensor.shape.n_rows() || piece_rows % panel_rows == 0;
  if (!is_tiled_[graph::index(id)] || !has_whole_panels ||
      kernels_.interleave[static_cast<std::size_t>(tensor.dtype)] == nullptr) {
    HEARTH_TRY(keep_rows(id));
    return WeightMatrix{tensor.data.data(), false};
  }
  if (const Bytes mapped = cached(weight); !mapped.empty()) {
    return WeightMatrix{mapped.data(), true};
  }
  Buffer& tiles = tiles_[graph::index(id)];
  if (tiles.size() == 0) {
    Buffer made;
    if (tensor.data.empty()) {
      HEARTH_ASSIGN(made, weight.origin.make());
    }
    tiles = make_tiles(weight, made.size() > 0 ? Bytes(made.bytes()) : tensor.data);
    bytes_ += tiles.size();
  }
  return WeightMatrix{tiles.bytes().data(), true};
}

Result<void> PackedWeights::keep_rows(graph::WeightId id) {
  graph::Weight& weight = weights_[graph::index(id)];
  if (!weight.tensor.data.empty()) {
    return {};
  }
  Buffer& rows = rows_[graph::index(id)];
  HEARTH_ASSIGN(rows, weight.origin.make());
  weight.tensor.data = rows.bytes();
  bytes_ += rows.size();
  return {};
}

Result<void> PackedWeights::take_from(TileCache cache) {
  for (const graph::Weight& weight : weights_) {
    const Bytes mapped = cache.find(weight);
    if (mapped.empty()) {
      continue;
    }
    const TensorView& tensor = weight.tensor;
    if (std::ssize(mapped) != tile_bytes_of(tensor)) {
      return fail(ErrorCode::invalid_file, "tiles of tensor '{}': expected {} bytes, found {}",
                  weight.name, tile_bytes_of(tensor), mapped.size());
    }
    if (tensor.data.empty()) {
      continue;  // making it would take as long as making its tiles
    }
    const std::int64_t n_panels = ceil_div(tensor.shape.n_rows(), panel_rows);
    const auto panel_bytes = static_cast<std::size_t>(panel_rows * row_bytes_of(tensor));
    std::vector<std::byte> turned(panel_bytes);
    for (const std::int64_t panel : {std::int64_t{0}, n_panels / 2, n_panels - 1}) {
      turn_panel(tensor, tensor.data, panel * panel_rows, turned.data());
      const Bytes found =
          mapped.subspan(static_cast<std::size_t>(panel) * panel_bytes, panel_bytes);
      if (!std::ranges::equal(turned, found)) {
        return fail(ErrorCode::invalid_file,
                    "tiles of tensor '{}': rows {} and following differ from the model's",
                    weight.name, panel * panel_rows);
      }
    }
  }
  cache_ = std::move(cache);
  return {};
}

std::vector<MatrixTiles> PackedWeights::all_tiles() const {
  std::vector<MatrixTiles> all;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (tiles_[i].size() > 0) {
      all.push_back({&weights_[i], tiles_[i].bytes()});
    } else if (const Bytes mapped = cached(weights_[i]); !mapped.empty()) {
      all.push_back({&weights_[i], mapped});
    }
  }
  return all;
}

}  // namespace hearth::backend::cpu
