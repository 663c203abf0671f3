#include "graph/graph.h"

#include "base/format.h"

namespace hearth::graph {

std::string to_string(const Graph& graph) {
  std::string text;
  for (const auto& node : graph.nodes) {
    const auto& desc = graph.values[index(node.output)];
    std::string operands;
    for (const auto input : node.inputs) {
      operands += format("{}%{}", operands.empty() ? "" : ", ", static_cast<int>(input));
    }
    text += format("%{} [{}{}, {}] = {}({})\n", static_cast<int>(node.output),
                   desc.axis == RowAxis::batch ? "rows " : "logit rows ", desc.rows, desc.features,
                   op_name(node.op), operands);
  }
  return text;
}

}  // namespace hearth::graph
