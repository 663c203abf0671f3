#pragma once
/// What flows through a graph: activations (values) and weights, both by number.

#include <cstdint>
#include <string>
#include <vector>

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

/// A weight as the model file stores it. Recorded graphs refer to it by WeightId, whatever the row
/// bucket.
struct Weight {
  std::string name;
  TensorView tensor;       // borrowed, aligned for the elements of its type
  bool is_mapped = false;  // the data is a mapped file's, so its pages may be dropped and come back
};

using WeightTable = std::vector<Weight>;

}  // namespace hearth::graph
