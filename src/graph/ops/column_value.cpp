#include "graph/ops/column_value.h"

#include "base/fail.h"

namespace hearth::graph {

Result<void> expect_searched_columns(std::string_view op, std::int64_t n_columns,
                                     std::int64_t features) {
  constexpr std::int64_t max_columns = std::int64_t{1} << 24;  // numbers that a float holds exactly
  if (n_columns < 1 || n_columns > features || n_columns > max_columns) {
    return fail(ErrorCode::invalid_argument, "{}: {} of {} columns, expected 1 or more, up to {}",
                op, n_columns, features, max_columns);
  }
  return {};
}

}  // namespace hearth::graph
