#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace hearth::graph {

/// A value of a row with its column, as ops that search rows give it: two numbers of their result.
struct ColumnValue {
  float column_number;  // exact: ops refuse rows of more columns than a float tells apart
  float value;

  [[nodiscard]] std::size_t column() const { return static_cast<std::size_t>(column_number); }
};

/// For shape rules: a row of `features` values has so many columns, and a float tells them apart.
Result<void> expect_searched_columns(std::string_view op, std::int64_t n_columns,
                                     std::int64_t features);

/// The result of such an op.
inline std::span<const ColumnValue> column_values(std::span<const float> result) {
  constexpr std::size_t numbers = sizeof(ColumnValue) / sizeof(float);
  return {as_array<const ColumnValue>(as_byte_array(result.data())), result.size() / numbers};
}

}  // namespace hearth::graph
