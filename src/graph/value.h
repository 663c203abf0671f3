#pragma once
/// What flows through a graph: activations (values) and weights, both by number.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"

namespace hearth::graph {

enum class ValueId : std::int32_t {};
enum class WeightId : std::int32_t {};

constexpr std::size_t index(ValueId id) {
  return static_cast<std::size_t>(id);
}
constexpr std::size_t index(WeightId id) {
  return static_cast<std::size_t>(id);
}

/// What the first dimension of a value counts, hence which length of the step block bounds it at
/// run time.
enum class RowAxis : std::uint8_t {
  batch,   // the rows of the ragged batch
  logits,  // only the rows that ask for logits
};

/// An activation: f32, [rows, features]. `rows` is the capacity of the row bucket the graph was
/// recorded for.
struct ValueDesc {
  RowAxis axis = RowAxis::batch;
  std::int64_t rows = 0;
  std::int64_t features = 0;

  bool operator==(const ValueDesc&) const = default;
};

/// Where the data of a weight comes from, hence what becomes of it when nobody reads it any more.
struct WeightOrigin {
  bool is_mapped = false;  // a mapped file, so its pages may be dropped and come back
  /// Makes the data, for a weight that no file has as it is needed; else empty. Thread-safe.
  /// Errors: invalid_file for data that cannot be converted.
  std::function<Result<Buffer>()> make{};
};

/// A weight as the model file stores it. Recorded graphs refer to it by WeightId, whatever the row
/// bucket.
struct Weight {
  std::string name;
  TensorView
      tensor;  // borrowed, aligned for the elements of its type; no data while it can be made
  WeightOrigin origin{};

  /// Of the data, be it there or not.
  [[nodiscard]] std::int64_t n_bytes() const;
};

using WeightTable = std::vector<Weight>;

}  // namespace hearth::graph
