/// Projection. Few rows: products that prepare their input themselves, several in one launch.
/// Otherwise the input is normed, gated and quantized once for all parts that take the same form,
/// and each part is a product that writes its output, or what a gate or a residual makes of it.

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "backend/gpu/executor/columns.h"
#include "backend/gpu/executor/matrix_product.h"
#include "backend/gpu/executor/recorder.h"
#include "backend/gpu/executor/strips.h"
#include "backend/gpu/kernels/columns.h"
#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {
namespace {

MatrixProduct product_of(const graph::MatMul& matmul, const Recorder& recorder) {
  return {.weight = matmul.weight,
          .n_out = recorder.host_weight(matmul.weight).tensor.shape[0],
          .bias = matmul.bias};
}

/// At most n products each.
std::vector<std::span<const MatrixProduct>> pieces_of(std::span<const MatrixProduct> products,
                                                      std::size_t n) {
  std::vector<std::span<const MatrixProduct>> pieces;
  for (; !products.empty(); products = products.subspan(pieces.back().size())) {
    pieces.push_back(products.first(std::min(n, products.size())));
  }
  return pieces;
}

/// Two parts of which the first is the gate.
Result<void> record_gated(const plan::Projection& projection, MatrixInput& input,
                          Recorder& recorder) {
  MatrixProduct gate = product_of(projection.parts[0].matmul, recorder);
  MatrixProduct up = product_of(projection.parts[1].matmul, recorder);
  up.residual = projection.residual;
  up.y = recorder.value(projection.output);
  return record_gated_products(std::move(gate), std::move(up), *projection.gate, input, recorder);
}

}  // namespace

bool convolves(const plan::Projection& projection, const graph::CausalConv& conv,
               const Recorder& recorder) {
  if (projection.gate || projection.residual || projection.row_gate ||
      projection.has_one_output() || recorder.rows(projection.input) != 1) {
    return false;
  }
  const MatrixInput input(projection.input, projection.norm, projection.input_gate);
  const MatrixProduct first = product_of(projection.parts.front().matmul, recorder);
  return takes_strips(first, input, recorder) && takes_conv(first, conv, recorder);
}

Result<void> record_projection(const plan::Projection& projection, Recorder& recorder,
                               const ConvolvedPart* conv) {
  MatrixInput input(projection.input, projection.norm, projection.input_gate);
  return record_projection(projection, input, recorder, conv);
}

Result<void> record_projection(const plan::Projection& projection, MatrixInput& input,
                               Recorder& recorder, const ConvolvedPart* conv) {
  if (projection.gate) {
    return record_gated(projection, input, recorder);
  }
  std::vector<MatrixProduct> products;
  for (const auto& part : projection.parts) {
    MatrixProduct product = product_of(part.matmul, recorder);
    if (projection.row_gate) {
      product.gate = {PRODUCT_ROW_GATE, projection.row_gate->kind,
                      recorder.value(projection.row_gate->value)};
    }
    product.residual = projection.residual;
    product.y = recorder.value(projection.has_one_output() ? projection.output : part.output);
    products.push_back(std::move(product));
  }
  const bool has_columns = std::ranges::any_of(products, [&](const MatrixProduct& product) {
    return takes_columns(product, input, recorder);
  });
  std::vector<MatrixProduct> strips;
  std::vector<MatrixProduct> columns;
  std::vector<MatrixProduct> float_columns;
  std::vector<MatrixProduct> others;
  for (MatrixProduct& product : products) {
    auto& taken = takes_columns(product, input, recorder)                        ? columns
                  : has_columns && takes_float_columns(product, input, recorder) ? float_columns
                  : takes_strips(product, input, recorder)                       ? strips
                                                                                 : others;
    taken.push_back(std::move(product));
  }
  if (has_columns) {
    input.prepare_columns(!float_columns.empty(), recorder);
    // First: they take longest.
    columns.insert(columns.begin(), float_columns.begin(), float_columns.end());
  }
  std::vector<graph::WeightId> matrices;
  for (const auto& product : others) {
    matrices.push_back(product.weight);
  }
  input.prepare_for(matrices, recorder);
  std::optional<StripConv> first_conv;
  if (conv != nullptr) {
    first_conv.emplace(StripConv{conv->op, recorder.value(conv->output)});
  }
  for (const auto part : pieces_of(strips, STRIP_PARTS)) {
    record_strips(part, input, recorder, first_conv ? &*first_conv : nullptr);
    first_conv.reset();
  }
  if (!columns.empty() || !others.empty()) {
    recorder.barrier();
  }
  for (const auto part : pieces_of(columns, COLUMN_PARTS)) {
    record_columns(part, input, recorder);
  }
  for (const auto& product : others) {
    HEARTH_TRY(product.record(input, recorder));
  }
  return {};
}

}  // namespace hearth::backend::gpu
