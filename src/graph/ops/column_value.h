#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace hearth::graph {

/// A value of a row with its column, as ops that search rows give it: two numbers of their result.
struct ColumnValue {
  float column_number;  // exact: ops refuse rows of more columns than a float tells apart
  float value;

  [[nodiscard]] std::size_t column() const { return static_cast<std::size_t>(column_number); }
};

inline constexpr std::int64_t max_searched_columns = std::int64_t{1} << 24;

/// The result of such an op.
inline std::span<const ColumnValue> column_values(std::span<const float> result) {
  constexpr std::size_t numbers = sizeof(ColumnValue) / sizeof(float);
  return {as_array<const ColumnValue>(as_byte_array(result.data())), result.size() / numbers};
}

}  // namespace hearth::graph
