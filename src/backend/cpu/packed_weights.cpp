#include "backend/cpu/packed_weights.h"

#include <algorithm>

#include "base/checked.h"
#include "base/memory_advice.h"
#include "quant/registry.h"

namespace hearth::backend::cpu {
namespace {

constexpr std::int64_t piece_bytes = 4 << 20;

}  // namespace

Result<WeightMatrix> PackedWeights::matrix(graph::WeightId id, std::int64_t piece_rows) {
  const graph::Weight& weight = weights_[graph::index(id)];
  const std::int64_t n_rows = weight.tensor.shape.n_rows();
  const bool has_whole_panels = piece_rows == n_rows || piece_rows % panel_rows == 0;
  const bool has_kernel =
      kernels_.interleave[static_cast<std::size_t>(weight.tensor.dtype)] != nullptr;
  if (!is_tiled_[graph::index(id)] || !has_kernel || !has_whole_panels) {
    HEARTH_TRY(keep_rows(id));
    return WeightMatrix{weight.tensor.data.data(), false};
  }
  Buffer& tiles = tiles_[graph::index(id)];
  if (tiles.size() == 0) {
    Buffer made;
    if (weight.tensor.data.empty()) {
      HEARTH_ASSIGN(made, weight.origin.make());
    }
    make_tiles(weight, made.size() > 0 ? Bytes(made.bytes()) : weight.tensor.data, tiles);
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

void PackedWeights::make_tiles(const graph::Weight& weight, Bytes rows, Buffer& tiles) {
  const auto interleave = kernels_.interleave[static_cast<std::size_t>(weight.tensor.dtype)];
  const std::int64_t n_rows = weight.tensor.shape.n_rows();
  const std::int64_t n_in = weight.tensor.shape.back();
  const std::int64_t row_bytes = quant::row_bytes(weight.tensor.dtype, n_in);
  const std::int64_t n_panels = ceil_div(n_rows, panel_rows);
  tiles = Buffer(n_panels * panel_rows * row_bytes);
  advise_huge_pages(tiles.bytes());
  // Each thread turns the panels that it will also read, so that their pages are near it, and
  // drops the file's pages piece by piece, so that not even one matrix is there twice.
  const std::int64_t piece = std::max<std::int64_t>(1, piece_bytes / (panel_rows * row_bytes));
  pool_.run([&](const Worker& worker) {
    const auto share = worker.share(n_panels);
    for (std::int64_t begin = share.begin; begin < share.end; begin += piece) {
      const std::int64_t end = std::min(begin + piece, share.end);
      for (std::int64_t panel = begin; panel < end; ++panel) {
        const std::int64_t row = panel * panel_rows;
        interleave(rows.data() + row * row_bytes, row_bytes, std::min(panel_rows, n_rows - row),
                   n_in, tiles.bytes().data() + row * row_bytes);
      }
      if (weight.origin.is_mapped) {
        const std::int64_t first = begin * panel_rows;
        const std::int64_t n = std::min(end * panel_rows, n_rows) - first;
        drop_mapped_pages(rows.subspan(static_cast<std::size_t>(first * row_bytes),
                                       static_cast<std::size_t>(n * row_bytes)));
      }
    }
  });
}

}  // namespace hearth::backend::cpu
