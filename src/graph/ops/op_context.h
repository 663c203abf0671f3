#pragma once
/// What an op's shape rule and reference kernel are given.

#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/kv_cache.h"
#include "graph/row_store.h"
#include "graph/state_cache.h"
#include "graph/step.h"
#include "graph/value.h"

namespace hearth::graph {

/// Everything a reference kernel may read besides its inputs, and the caches that it writes.
struct OpContext {
  const WeightTable& weights;
  const StepView& step;
  HostKvCache& kv;
  HostStateCache& states;
  HostRowStore& rows;
};

/// The rows of an activation that are alive in this step: [rows, features], rows one after another.
struct ConstRows {
  const float* data;
  std::int64_t rows;
  std::int64_t features;

  [[nodiscard]] const float* row(std::int64_t i) const { return data + i * features; }
};
struct Rows {
  float* data;
  std::int64_t rows;
  std::int64_t features;

  [[nodiscard]] float* row(std::int64_t i) const { return data + i * features; }
  [[nodiscard]] std::int64_t elements() const { return rows * features; }
};

/// The tensor of a weight.
inline const TensorView& tensor(const WeightTable& weights, WeightId id) {
  return weights[index(id)].tensor;
}

/// The numbers of a weight that its shape rule requires to be F32.
inline const float* f32_data(const WeightTable& weights, WeightId id) {
  return as_array<float>(tensor(weights, id).data.data());
}

/// For shape rules: the named weight must be F32 and have exactly this shape.
Result<void> expect_f32_weight(std::string_view op, const WeightTable& weights, WeightId id,
                               const Shape& expected);

/// For shape rules: both inputs have the same rows and features, and so has the result.
Result<ValueDesc> expect_equal_shapes(std::string_view op, std::span<const ValueDesc> inputs);

/// For shape rules: the named weight must have exactly this shape.
Result<void> expect_weight_shape(std::string_view op, const WeightTable& weights, WeightId id,
                                 const Shape& expected);

}  // namespace hearth::graph
