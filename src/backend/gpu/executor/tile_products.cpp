#include "backend/gpu/executor/tile_products.h"

#include "backend/gpu/kernels/expert_rows.h"
#include "backend/gpu/kernels/tile_product.h"
#include "backend/gpu/kernels/weight_tiles.h"

namespace hearth::backend::gpu {
namespace {

/// With fewer, a tile is mostly empty.
constexpr u32 min_capacity = 17;

}  // namespace

bool takes_tiles(const MatrixProduct& product, const MatrixInput& input, const Recorder& recorder) {
  return recorder.is_tiled(product.weight) && recorder.rows(input.value()) >= min_capacity &&
         (!product.experts || product.experts->first_row % TILE_ROWS == 0);
}

ExpertRows record_expert_rows(const MatrixProduct& product, std::uint32_t tile_entries,
                              Recorder& recorder) {
  const graph::ValueId routing = product.experts->routing;
  const u32 n_used = recorder.features(routing) / 2;
  const u32 n_entries = recorder.rows(routing) * n_used;
  ExpertRowsParams params{
      .n_used = n_used,
      .n_experts = static_cast<u32>(recorder.host_weight(product.weight).tensor.shape[0]),
      .tile_entries = tile_entries};
  params.n_tiles = EXPERT_TILES(n_entries, params.n_experts, params.tile_entries);
  ExpertRows rows{.entries = recorder.scratch(std::int64_t{n_entries} * 4),
                  .tiles = recorder.scratch(std::int64_t{params.n_tiles} * 12),
                  .n_tiles = params.n_tiles};
  recorder.dispatch(KernelId::expert_rows,
                    {recorder.step().counts, recorder.value(routing), rows.entries, rows.tiles},
                    params, {params.n_experts}, EXPERT_ROWS_THREADS);
  return rows;
}

}  // namespace hearth::backend::gpu
