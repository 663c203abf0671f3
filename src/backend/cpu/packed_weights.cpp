#include "backend/cpu/packed_weights.h"

#include <algorithm>

#include "base/checked.h"
#include "base/memory_advice.h"
#include "quant/registry.h"

namespace hearth::backend::cpu {
namespace {

constexpr std::int64_t piece_bytes = 4 << 20;

}  // namespace

WeightMatrix PackedWeights::matrix(graph::WeightId weight, std::int64_t piece_rows) {
  const auto& [name, tensor, is_mapped] = weights_[graph::index(weight)];
  const auto interleave = kernels_.interleave[static_cast<std::size_t>(tensor.dtype)];
  const std::int64_t n_rows = tensor.shape.n_rows();
  const bool has_whole_panels = piece_rows == n_rows || piece_rows % panel_rows == 0;
  if (!is_tiled_[graph::index(weight)] || interleave == nullptr || !has_whole_panels) {
    return {tensor.data.data(), false};
  }
  Buffer& tiles = tiles_[graph::index(weight)];
  if (tiles.size() == 0) {
    const std::int64_t n_in = tensor.shape.back();
    const std::int64_t row_bytes = quant::row_bytes(tensor.dtype, n_in);
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
          interleave(tensor.data.data() + row * row_bytes, row_bytes,
                     std::min(panel_rows, n_rows - row), n_in,
                     tiles.bytes().data() + row * row_bytes);
        }
        if (is_mapped) {
          const std::int64_t first = begin * panel_rows;
          const std::int64_t n = std::min(end * panel_rows, n_rows) - first;
          drop_mapped_pages(tensor.data.subspan(static_cast<std::size_t>(first * row_bytes),
                                                static_cast<std::size_t>(n * row_bytes)));
        }
      }
    });
    bytes_ += tiles.size();
  }
  return {tiles.bytes().data(), true};
}

}  // namespace hearth::backend::cpu
