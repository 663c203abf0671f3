#include "backend/gpu/executor/device_weights.h"

#include <algorithm>
#include <map>

#include "backend/gpu/executor/tiled_types.h"
#include "backend/gpu/kernels/weight_tiles.h"
#include "base/assert.h"
#include "base/checked.h"
#include "quant/registry.h"

namespace hearth::backend::gpu {
namespace {

/// A weight as matrices of rows of blocks.
struct TiledShape {
  std::int64_t n_matrices;
  std::int64_t n_rows;  // of a matrix
  std::int64_t row_bytes;

  explicit TiledShape(const TensorView& tensor)
      : n_rows(tensor.shape[tensor.shape.rank() - 2]),
        row_bytes(quant::row_bytes(tensor.dtype, tensor.shape.back())) {
    n_matrices = static_cast<std::int64_t>(tensor.data.size()) / (n_rows * row_bytes);
  }

  [[nodiscard]] std::int64_t matrix_strips() const { return ceil_div(n_rows, TILE_ROWS); }
  [[nodiscard]] std::int64_t bytes() const {
    return n_matrices * matrix_strips() * TILE_ROWS * row_bytes;
  }
};

/// Uploads matrices a part at a time and puts each into tiles.
class TileUploader {
 public:
  TileUploader(Device& device, std::int64_t largest) : device_(device), largest_(largest) {}

  Result<void> upload(const TensorView& tensor, const BufferPart& to) {
    if (staging_ == nullptr) {
      HEARTH_ASSIGN(staging_,
                    device_.allocate(static_cast<std::uint64_t>(largest_), "weights on their way"));
    }
    const TiledShape shape(tensor);
    const auto block_bytes = static_cast<u32>(quant::info(tensor.dtype).block_bytes);
    const auto n_tiles =
        static_cast<u32>(shape.row_bytes / (block_bytes * TILE_BLOCKS(block_bytes)));
    // Whole matrices, or strips of one.
    const std::int64_t matrix_bytes = shape.n_rows * shape.row_bytes;
    const std::int64_t n_at_once = std::max<std::int64_t>(largest_ / matrix_bytes, 1);
    const std::int64_t rows_at_once =
        std::min(shape.n_rows, largest_ / shape.row_bytes / TILE_ROWS * TILE_ROWS);
    for (std::int64_t matrix = 0; matrix < shape.n_matrices; matrix += n_at_once) {
      const std::int64_t n = std::min(n_at_once, shape.n_matrices - matrix);
      for (std::int64_t row = 0; row < shape.n_rows; row += rows_at_once) {
        const std::int64_t n_rows = std::min(rows_at_once, shape.n_rows - row);
        const std::int64_t strip = matrix * shape.matrix_strips() + row / TILE_ROWS;
        const std::int64_t n_strips = n * ceil_div(n_rows, TILE_ROWS);
        const Bytes from = tensor.data.subspan(
            static_cast<std::size_t>(matrix * matrix_bytes + row * shape.row_bytes),
            static_cast<std::size_t>(n * n_rows * shape.row_bytes));
        const std::int64_t strip_bytes = TILE_ROWS * shape.row_bytes;
        BufferPart tiles = to;
        tiles.offset += static_cast<std::uint64_t>(strip * strip_bytes);
        tiles.bytes = static_cast<std::uint64_t>(n_strips * strip_bytes);
        HEARTH_TRY(tile(from, tiles, {block_bytes, n_tiles, static_cast<u32>(n_rows)},
                        static_cast<u32>(n_strips)));
      }
    }
    return {};
  }

  /// What was submitted is done.
  Result<void> finish() { return commands_ == nullptr ? Result<void>() : wait(); }

 private:
  Result<void> tile(Bytes from, const BufferPart& to, const TileWeightsParams& params,
                    u32 n_strips) {
    const BufferPart staged{staging_, 0, from.size()};
    HEARTH_TRY(device_.upload(staged, from));
    HEARTH_TRY(finish());
    CommandList list;
    list.dispatch(KernelId::tile_weights, {staged, to}, params, {params.n_tiles, n_strips},
                  {TILE_WEIGHTS_THREADS});
    HEARTH_ASSIGN(commands_, device_.prepare(list));
    HEARTH_ASSIGN(ticket_, device_.submit(*commands_));
    return {};
  }

  Result<void> wait() {
    HEARTH_ASSIGN(const bool is_done, device_.wait(ticket_, std::chrono::hours(1)));
    HEARTH_ASSERT(is_done);
    return {};
  }

  Device& device_;
  std::int64_t largest_;  // bytes of staging memory
  std::shared_ptr<Buffer> staging_;
  std::unique_ptr<PreparedCommands> commands_;
  Ticket ticket_{};
};

}  // namespace

Result<DeviceWeights> DeviceWeights::create(Device& device, const graph::WeightTable& weights,
                                            std::int64_t staging_bytes) {
  DeviceWeights uploaded;
  std::map<const std::byte*, std::uint64_t> offsets;  // by where the data lies in the file
  std::int64_t largest_strip = 0;
  for (const graph::Weight& weight : weights) {
    const TensorView& tensor = weight.tensor;
    const bool is_tiled = device.capabilities().has_integer_tiles && has_tiles(tensor);
    auto bytes = static_cast<std::int64_t>(tensor.data.size());
    if (is_tiled) {
      const TiledShape shape(tensor);
      bytes = shape.bytes();
      largest_strip = std::max(largest_strip, TILE_ROWS * shape.row_bytes);
    }
    const auto [entry, is_new] =
        offsets.emplace(tensor.data.data(), static_cast<std::uint64_t>(uploaded.bytes_));
    uploaded.parts_.push_back({nullptr, entry->second, static_cast<std::uint64_t>(bytes)});
    uploaded.is_tiled_.push_back(is_tiled);
    if (is_new) {
      uploaded.bytes_ = round_up(uploaded.bytes_ + bytes, buffer_alignment);
    }
  }
  HEARTH_ASSIGN(const auto buffer,
                device.allocate(static_cast<std::uint64_t>(uploaded.bytes_), "weights"));
  TileUploader tiles(device, std::max(std::min(staging_bytes, uploaded.bytes_), largest_strip));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    BufferPart& part = uploaded.parts_[i];
    part.buffer = buffer;
    const TensorView& tensor = weights[i].tensor;
    if (offsets.erase(tensor.data.data()) == 1) {  // once
      HEARTH_TRY(uploaded.is_tiled_[i] ? tiles.upload(tensor, part)
                                       : device.upload(part, tensor.data));
    }
  }
  HEARTH_TRY(tiles.finish());
  return uploaded;
}

}  // namespace hearth::backend::gpu
