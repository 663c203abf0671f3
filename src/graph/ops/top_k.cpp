#include "graph/ops/top_k.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/fail.h"
#include "graph/builder.h"
#include "graph/ops/column_value.h"

namespace hearth::graph {
namespace {

bool is_number(float value) {
  return value < std::numeric_limits<float>::infinity();
}

/// A total order of values at different columns.
bool ranks_before(const ColumnValue& a, const ColumnValue& b) {
  const bool is_a_number = is_number(a.value);
  if (is_a_number != is_number(b.value)) {
    return !is_a_number;
  }
  if (is_a_number && a.value != b.value) {
    return a.value > b.value;
  }
  return a.column_number < b.column_number;
}

/// `best` is a heap, the last of the ranking in front, while the others are looked at.
void take_largest(std::span<const float> values, std::span<ColumnValue> best) {
  for (std::size_t i = 0; i < best.size(); ++i) {
    best[i] = {static_cast<float>(i), values[i]};
  }
  std::ranges::make_heap(best, ranks_before);
  for (std::size_t i = best.size(); i < values.size(); ++i) {
    if (values[i] <= best.front().value) {  // nearly always; of equal ones the lower column stays
      continue;
    }
    const ColumnValue next{static_cast<float>(i), values[i]};
    if (ranks_before(next, best.front())) {
      std::ranges::pop_heap(best, ranks_before);
      best.back() = next;
      std::ranges::push_heap(best, ranks_before);
    }
  }
  std::ranges::sort(best, {}, &ColumnValue::column_number);
}

}  // namespace

Result<ValueDesc> TopK::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                              std::int64_t) const {
  HEARTH_TRY(expect_searched_columns(name, n_columns, inputs[0].features));
  if (k < 1 || k > n_columns) {
    return fail(ErrorCode::invalid_argument, "top_k: {} of {} columns, expected 1 to all of them",
                k, n_columns);
  }
  return ValueDesc{inputs[0].axis, inputs[0].rows, 2 * k};
}

void TopK::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  for (std::int64_t row = 0; row < out.rows; ++row) {
    auto* const best = static_cast<ColumnValue*>(static_cast<void*>(out.row(row)));
    take_largest({inputs[0].row(row), static_cast<std::size_t>(n_columns)},
                 {best, static_cast<std::size_t>(k)});
  }
}

ValueId top_k(GraphBuilder& g, ValueId x, std::int64_t n_columns, std::int64_t k) {
  return g.add(TopK{n_columns, k}, {x});
}

}  // namespace hearth::graph
