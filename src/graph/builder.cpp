#include "graph/builder.h"

#include <utility>

namespace hearth::graph {

ValueId GraphBuilder::add(AnyOp op, std::initializer_list<ValueId> inputs) {
  const auto output = static_cast<ValueId>(graph_.values.size());
  std::vector<ValueDesc> descs;
  for (const auto input : inputs) {
    descs.push_back(desc(input));
  }
  auto inferred = std::visit(
      [&](const auto& each) { return each.infer(descs, weights_, graph_.bucket.rows); }, op);
  if (!inferred && !fault_) {
    fault_ = inferred.error();
  }
  graph_.values.push_back(inferred.value_or(descs.empty() ? ValueDesc{} : descs.front()));
  graph_.nodes.push_back({std::move(op), inputs, output});
  return output;
}

Result<Graph> GraphBuilder::finish(ValueId result) {
  if (fault_) {
    return Failure(*fault_);
  }
  graph_.result = result;
  return std::move(graph_);
}

}  // namespace hearth::graph
