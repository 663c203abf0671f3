#include "graph/ops/columns.h"

#include <algorithm>

#include "base/fail.h"
#include "graph/builder.h"

namespace hearth::graph {

Result<ValueDesc> Columns::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                 std::int64_t) const {
  if (pattern.width < 1 || pattern.start < 0 || pattern.start + pattern.width > pattern.period ||
      inputs[0].features % pattern.period != 0) {
    return fail(ErrorCode::invalid_argument,
                "columns: {} columns from {} on of every {} do not fit {} features", pattern.width,
                pattern.start, pattern.period, inputs[0].features);
  }
  return ValueDesc{inputs[0].axis, inputs[0].rows,
                   inputs[0].features / pattern.period * pattern.width};
}

void Columns::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  const float* from = inputs[0].data + pattern.start;
  for (float* to = out.data; to != out.data + out.elements(); to += pattern.width) {
    std::copy_n(from, pattern.width, to);
    from += pattern.period;
  }
}

ValueId columns(GraphBuilder& g, ValueId x, const ColumnPattern& pattern) {
  return g.add(Columns{pattern}, {x});
}

}  // namespace hearth::graph
