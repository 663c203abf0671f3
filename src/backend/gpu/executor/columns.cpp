#include "backend/gpu/executor/columns.h"

#include <algorithm>
#include <array>

#include "backend/gpu/executor/strips.h"
#include "backend/gpu/kernels/columns.h"
#include "backend/gpu/kernels/weight_tiles.h"
#include "base/checked.h"
#include "quant/registry.h"

namespace hearth::backend::gpu {
namespace {

constexpr u32 min_column_rows = 5;
constexpr u32 usual_simdgroups = 4;      // of a threadgroup
constexpr u32 simdgroups_for_units = 8;  // of a compute unit, that hide each other's latency
// Of fewer simdgroups for a unit than this, one after the other goes through all blocks of k, which
// takes longer than to bring together what several say.
constexpr u32 few_simdgroups_for_units = 16;
constexpr u32 split_simdgroups = 4;       // of a threadgroup,
constexpr u32 most_split_simdgroups = 8;  // and of one that has two tiles for each of so many

constexpr std::int64_t column_block = 256;

bool are_column_rows(u32 rows) {
  return rows >= min_column_rows && rows < min_prompt_rows;
}

bool has_column_type(graph::WeightId matrix, const Recorder& recorder) {
  const auto type = strip_type(matrix, recorder);
  return type == STRIP_Q4_K || type == STRIP_Q5_K || type == STRIP_Q6_K;
}

bool takes_columns(const MatrixProduct& product, const MatrixInput& input, const Recorder& recorder,
                   bool is_pair) {
  const u32 rows = recorder.rows(input.value());
  const bool are_few_for_strips = rows < min_column_rows && !product.experts &&
                                  has_column_type(product.weight, recorder) &&
                                  !fits_strips(product, input, recorder, is_pair);
  return (are_few_for_strips || prefers_columns(rows, product.weight, recorder)) && !product.bias &&
         product.gate.kind != PRODUCT_ELEMENT_GATE &&
         (!product.experts || product.experts->first_row % TILE_ROWS == 0);
}

u32 strips_of(const MatrixProduct& product) {
  return static_cast<u32>(ceil_div(product.n_out, TILE_ROWS));
}

/// How simdgroups share the strips of all parts and the columns.
void share_columns(u32 n_strips, u32 capacity, u32 n_units, bool has_floats, ColumnParams& params) {
  params.chunk_groups =
      std::min<u32>(COLUMN_MAX_GROUPS, static_cast<u32>(ceil_div(capacity, COLUMN_GROUP)));
  while (params.chunk_groups > 1 &&
         n_strips * ceil_div(capacity, COLUMN_GROUP * params.chunk_groups) <
             simdgroups_for_units * n_units) {
    --params.chunk_groups;
  }
  params.n_chunks = static_cast<u32>(ceil_div(capacity, COLUMN_GROUP * params.chunk_groups));
  params.simdgroup_strips =
      std::clamp<u32>(n_strips * params.n_chunks / (2 * simdgroups_for_units * n_units), 1, 4);
  // Of floats, simdgroups share what they bring; otherwise few make it more threadgroups.
  const auto most = static_cast<u32>(ceil_div(usual_simdgroups, params.n_chunks));
  const u32 enough = std::max(n_strips / (params.simdgroup_strips * n_units), 1u);
  params.group_strips = (has_floats ? most : std::min(most, enough)) * params.simdgroup_strips;
}

/// Whether simdgroups rather share the blocks of each strip.
bool prefers_split_k(u32 n_strips, u32 capacity, u32 n_units) {
  return n_strips * ceil_div(capacity, COLUMN_MAX_COLUMNS) < few_simdgroups_for_units * n_units;
}

/// And how: of `n_tiles` for each strip. Returns the number of simdgroups.
u32 share_split_k(u32 n_strips, u32 n_tiles, u32 capacity, u32 n_units, ColumnParams& params) {
  const u32 n_simdgroups =
      n_tiles >= 2 * most_split_simdgroups ? most_split_simdgroups : split_simdgroups;
  const bool has_two = capacity > COLUMN_GROUP && n_strips >= 2 * n_units &&
                       n_tiles * SPLIT_UNIT_WORDS(2) <= COLUMN_WORK;
  params.chunk_groups = has_two ? 2 : 1;
  params.n_chunks = static_cast<u32>(ceil_div(capacity, COLUMN_GROUP * params.chunk_groups));
  params.group_strips = 1;
  params.round_units =
      COLUMN_WORK / SPLIT_UNIT_WORDS(params.chunk_groups) / n_simdgroups * n_simdgroups;
  return n_simdgroups;
}

/// The same for experts, of whose entries a threadgroup has one tile.
void share_expert_columns(ColumnParams& params) {
  constexpr u32 enough_blocks = 8;  // of a simdgroup, beside which its beginning is short
  params.chunk_groups = COLUMN_MAX_GROUPS;
  params.n_chunks = 1;
  params.simdgroup_strips =
      std::max<u32>(enough_blocks / (params.n / 256 * (params.is_pair != 0 ? 2 : 1)), 1);
  params.group_strips = usual_simdgroups * params.simdgroup_strips;
}

/// `products` in the order of the kernel's weights, n_outputs of which have strips of their own.
void dispatch_columns(std::span<const MatrixProduct> products, std::size_t n_outputs,
                      ColumnParams params, const MatrixInput& input, Recorder& recorder,
                      const SlotSum* sum = nullptr) {
  const MatrixProduct& first = products.front();
  BufferPart slots = recorder.absent();
  BufferPart routing = recorder.absent();
  if (sum != nullptr) {
    params.n_slots = recorder.features(sum->routing) / 2;
    slots = sum->said;
    routing = recorder.value(sum->routing);
  }
  const TensorView& matrix = recorder.host_weight(first.weight).tensor;
  params.axis = recorder.axis(input.value());
  params.n = static_cast<u32>(matrix.shape.back());
  params.has_row_gate = first.gate.kind == PRODUCT_ROW_GATE ? 1 : 0;
  params.row_activation = static_cast<u32>(first.gate.activation);
  params.has_residual = first.residual ? 1 : 0;
  BufferPart entries = recorder.absent();
  BufferPart tiles = recorder.absent();
  u32 n_tiles = 1;
  const auto outputs = products.first(n_outputs);
  const auto is_float = [&recorder](const MatrixProduct& product) {
    return !recorder.is_tiled(product.weight);
  };
  const bool has_floats = std::ranges::any_of(outputs, is_float);
  u32 n_simdgroups = 0;
  if (first.experts) {
    const ExpertRows& rows = first.experts->rows.value();
    entries = rows.entries;
    tiles = rows.tiles;
    n_tiles = rows.n_tiles;
    params.n_used = recorder.features(first.experts->routing) / 2;
    params.expert_rows = recorder.expert_rows(first.weight);
    params.has_x_per_slot = first.experts->has_x_per_slot ? 1 : 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(products.size(), 2); ++i) {
      params.first_row[i] = static_cast<u32>(products[i].experts->first_row);
    }
    share_expert_columns(params);
  } else {
    u32 n_strips = 0;
    for (const auto& product : outputs) {
      n_strips += is_float(product) ? 0 : strips_of(product);
    }
    const u32 capacity = recorder.rows(input.value());
    const u32 n_units = recorder.device().compute_units;
    if (prefers_split_k(n_strips, capacity, n_units)) {
      const u32 n_blocks = params.n / static_cast<u32>(column_block);
      n_simdgroups = share_split_k(n_strips, params.is_pair != 0 ? 2 * n_blocks : n_blocks,
                                   capacity, n_units, params);
    } else {
      share_columns(n_strips, capacity, n_units, has_floats, params);
    }
  }
  const bool is_split = n_simdgroups != 0;
  if (!is_split) {
    n_simdgroups = params.n_chunks * params.group_strips / params.simdgroup_strips;
  }
  params.float_chunks =
      static_cast<u32>(ceil_div(recorder.rows(input.value()), COLUMN_FLOAT_COLUMNS * n_simdgroups));
  u32 end = 0;
  for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
    if (i < products.size()) {
      params.n_out[i] = static_cast<u32>(products[i].n_out);
      params.type[i] = *strip_type(products[i].weight, recorder);
    }
    if (i < n_outputs && is_float(products[i])) {
      end += static_cast<u32>(ceil_div(products[i].n_out, COLUMN_FLOAT_ROWS)) * params.float_chunks;
    } else if (i < n_outputs) {
      end += static_cast<u32>(ceil_div(strips_of(products[i]), params.group_strips));
    }
    params.group_end[i] = end;
  }

  std::vector<BufferPart> buffers{recorder.step().counts};
  const auto& x = input.columns();
  buffers.insert(buffers.end(), x.begin(), x.end());
  buffers.push_back(has_floats ? input.prepared_floats() : recorder.absent());
  if (!is_split) {
    buffers.insert(buffers.end(), {std::move(entries), std::move(tiles)});
  }
  buffers.insert(buffers.end(),
                 {params.has_row_gate != 0 ? first.gate.value : recorder.absent(),
                  first.residual ? recorder.value(*first.residual) : recorder.absent(),
                  std::move(slots), std::move(routing)});
  for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
    buffers.push_back(i < products.size() ? recorder.weight(products[i].weight)
                                          : recorder.absent());
  }
  for (std::size_t i = 0; i < COLUMN_PARTS; ++i) {
    buffers.push_back(i < n_outputs ? products[i].y : recorder.scratch(sizeof(float)));
  }
  recorder.dispatch(is_split ? KernelId::column_split_k : KernelId::column_projection,
                    std::move(buffers), params, {end, is_split ? params.n_chunks : n_tiles},
                    32 * n_simdgroups);
}

}  // namespace

bool prefers_columns(u32 rows, graph::WeightId matrix, const Recorder& recorder) {
  return are_column_rows(rows) && has_column_type(matrix, recorder);
}

bool takes_columns(const MatrixProduct& product, const MatrixInput& input,
                   const Recorder& recorder) {
  return takes_columns(product, input, recorder, /*is_pair=*/false);
}

bool takes_float_columns(const MatrixProduct& product, const MatrixInput& input,
                         const Recorder& recorder) {
  const TensorView& matrix = recorder.host_weight(product.weight).tensor;
  return recorder.rows(input.value()) < min_prompt_rows && matrix.dtype == DType::f32 &&
         matrix.shape.back() % column_block == 0 && !product.bias && !product.experts &&
         product.gate.kind != PRODUCT_ELEMENT_GATE;
}

bool takes_column_pair(const MatrixProduct& gate, const MatrixProduct& up, const MatrixInput& input,
                       const Recorder& recorder) {
  const auto type_of = [&recorder](const MatrixProduct& product) {
    return recorder.host_weight(product.weight).tensor.dtype;
  };
  return type_of(gate) == type_of(up) && takes_columns(gate, input, recorder, /*is_pair=*/true) &&
         takes_columns(up, input, recorder, /*is_pair=*/true) &&
         (!gate.experts || recorder.expert_rows(gate.weight) == recorder.expert_rows(up.weight));
}

void record_columns(std::span<const MatrixProduct> products, const MatrixInput& input,
                    Recorder& recorder, const SlotSum* sum) {
  dispatch_columns(products, products.size(), {}, input, recorder, sum);
}

void record_column_pair(const MatrixProduct& gate, const MatrixProduct& up,
                        graph::ActivationKind activation, const MatrixInput& input,
                        Recorder& recorder) {
  // The kernel writes what comes of both where the first goes.
  std::array products{gate, up};
  products[0].residual = up.residual;
  products[0].y = up.y;
  const ColumnParams params{.is_pair = 1, .activation = static_cast<u32>(activation)};
  dispatch_columns(products, 1, params, input, recorder);
}

}  // namespace hearth::backend::gpu
