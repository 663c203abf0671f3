#include "backend/gpu/executor/matrix_product.h"

#include <string_view>
#include <utility>

#include "backend/gpu/executor/columns.h"
#include "backend/gpu/executor/strips.h"
#include "backend/gpu/executor/tile_products.h"
#include "backend/gpu/kernels/columns.h"
#include "backend/gpu/kernels/product_rows.h"
#include "backend/gpu/kernels/tile_product.h"
#include "base/checked.h"
#include "base/format.h"
#include "quant/integer_form.h"
#include "quant/registry.h"

namespace hearth::backend::gpu {

namespace {

/// How a kernel is launched that takes ProductParams, and the buffers in which it finds its rows.
struct ProductLaunch {
  std::string_view family;
  Dim3 grid;
  u32 threads;
  std::vector<BufferPart> places;
};

ProductLaunch tile_launch(const MatrixProduct& product, u32 capacity, const Recorder& recorder) {
  const auto groups = static_cast<u32>(ceil_div(product.n_out, TILE_PRODUCT_OUTPUTS));
  if (product.experts) {
    const ExpertRows& rows = product.experts->rows.value();
    return {
        "tile_product_", {groups, rows.n_tiles}, TILE_PRODUCT_THREADS, {rows.entries, rows.tiles}};
  }
  return {"tile_product_",
          {groups, static_cast<u32>(ceil_div(capacity, TILE_PRODUCT_COLUMNS))},
          TILE_PRODUCT_THREADS,
          {recorder.absent(), recorder.absent()}};
}

ProductLaunch piece_launch(const MatrixProduct& product, u32 capacity, const Recorder& recorder) {
  const auto groups = static_cast<u32>(ceil_div(product.n_out, PRODUCT_GROUP_OUTPUTS));
  if (product.experts) {
    const graph::ValueId routing = product.experts->routing;
    return {"product_",
            {recorder.features(routing) / 2, groups, capacity},
            PRODUCT_THREADS,
            {recorder.value(routing)}};
  }
  return {"product_",
          {static_cast<u32>(ceil_div(capacity, PRODUCT_GROUP_ROWS)), groups},
          PRODUCT_THREADS,
          {recorder.absent()}};
}

/// Many rows of floats; few outputs would leave most of a threadgroup idle.
bool takes_rows(const MatrixProduct& product, const MatrixInput& input, const Recorder& recorder) {
  constexpr std::int64_t min_outputs = 16;
  return quant::integer_layout(recorder.host_weight(product.weight).tensor.dtype) == nullptr &&
         !product.experts && recorder.rows(input.value()) >= min_prompt_rows &&
         product.n_out >= min_outputs;
}

ProductLaunch rows_launch(const MatrixProduct& product, u32 capacity) {
  const u32 rows = product.n_out <= PRODUCT_ROWS_OUTPUTS ? PRODUCT_ROWS_FEW : PRODUCT_ROWS_ROWS;
  return {"product_rows_",
          {static_cast<u32>(ceil_div(capacity, rows)),
           static_cast<u32>(ceil_div(product.n_out, PRODUCT_ROWS_OUTPUTS))},
          PRODUCT_ROWS_THREADS,
          {}};
}

ProductLaunch launch_of(const MatrixProduct& product, const MatrixInput& input,
                        const Recorder& recorder) {
  const u32 capacity = recorder.rows(input.value());
  if (takes_tiles(product, input, recorder)) {
    return tile_launch(product, capacity, recorder);
  }
  return takes_rows(product, input, recorder) ? rows_launch(product, capacity)
                                              : piece_launch(product, capacity, recorder);
}

}  // namespace

void MatrixProduct::prepare(MatrixInput& input, Recorder& recorder) {
  if (takes_columns(*this, input, recorder)) {
    input.prepare_columns(/*with_floats=*/false, recorder);
  } else {
    input.prepare_for({{weight}}, recorder);
  }
  if (!experts || experts->rows) {
    return;
  }
  if (takes_columns(*this, input, recorder)) {
    experts->rows = record_expert_rows(*this, COLUMN_MAX_COLUMNS, recorder);
  } else if (takes_tiles(*this, input, recorder)) {
    experts->rows = record_expert_rows(*this, TILE_PRODUCT_COLUMNS, recorder);
  }
}

Result<void> MatrixProduct::record(const MatrixInput& input, Recorder& recorder) const {
  if (takes_columns(*this, input, recorder)) {
    record_columns({this, 1}, input, recorder);
    return {};
  }
  const auto& [name, tensor, is_mapped] = recorder.host_weight(weight);
  ProductLaunch launch = launch_of(*this, input, recorder);
  HEARTH_ASSIGN(const KernelId kernel,
                kernel_for(launch.family, tensor.dtype, format("tensor '{}'", name)));
  ProductParams params{.axis = recorder.axis(input.value()),
                       .n_in = static_cast<u32>(tensor.shape.back()),
                       .n_out = static_cast<u32>(n_out),
                       .has_bias = bias ? 1u : 0u,
                       .gate = gate.kind,
                       .activation = static_cast<u32>(gate.activation),
                       .has_residual = residual ? 1u : 0u,
                       .is_tiled = recorder.is_tiled(weight) ? 1u : 0u};
  if (experts) {
    params.n_used = recorder.features(experts->routing) / 2;
    params.expert_rows = recorder.expert_rows(weight);
    params.first_row = static_cast<u32>(experts->first_row);
    params.has_x_per_slot = experts->has_x_per_slot ? 1 : 0;
  }
  std::vector<BufferPart> buffers{recorder.step().counts, recorder.weight(weight)};
  const auto& x = input.buffers(weight, recorder);
  buffers.insert(buffers.end(), x.begin(), x.end());
  buffers.insert(buffers.end(), launch.places.begin(), launch.places.end());
  buffers.push_back(bias ? recorder.weight(*bias) : recorder.absent());
  buffers.push_back(gate.kind == PRODUCT_NO_GATE ? recorder.absent() : gate.value);
  buffers.push_back(residual ? recorder.value(*residual) : recorder.absent());
  buffers.push_back(y);
  recorder.dispatch(kernel, std::move(buffers), params, launch.grid, launch.threads);
  return {};
}

Result<void> record_gated_products(MatrixProduct gate, MatrixProduct up,
                                   graph::ActivationKind activation, MatrixInput& input,
                                   Recorder& recorder) {
  const auto type_of = [&recorder](const MatrixProduct& product) {
    return recorder.host_weight(product.weight).tensor.dtype;
  };
  const bool is_column_pair = takes_column_pair(gate, up, input, recorder);
  if (!is_column_pair && type_of(gate) == type_of(up) && type_of(gate) != DType::f32 &&
      takes_strips(gate, input, recorder, /*is_pair=*/true) &&
      takes_strips(up, input, recorder, /*is_pair=*/true)) {
    record_strip_pair(gate, up, activation, input, recorder);
    return {};
  }
  if (!is_column_pair) {
    up.gate = {PRODUCT_ELEMENT_GATE, activation, {}};
  }
  if (is_column_pair && !gate.experts) {  // alone each might take strips
    input.prepare_columns(/*with_floats=*/false, recorder);
  } else {
    gate.prepare(input, recorder);
    if (gate.experts) {
      up.experts->rows = gate.experts->rows;
    }
    up.prepare(input, recorder);
  }
  recorder.barrier();
  if (is_column_pair) {
    record_column_pair(gate, up, activation, input, recorder);
    return {};
  }
  const std::int64_t slots = gate.experts ? recorder.features(gate.experts->routing) / 2 : 1;
  gate.y = recorder.scratch(recorder.rows(input.value()) * slots * gate.n_out * 4);
  HEARTH_TRY(gate.record(input, recorder));
  recorder.barrier();
  up.gate.value = gate.y;
  return up.record(input, recorder);
}

}  // namespace hearth::backend::gpu
