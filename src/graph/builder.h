#pragma once

#include <initializer_list>
#include <optional>
#include <utility>

#include "base/result.h"
#include "graph/graph.h"

namespace hearth::graph {

/// Records a graph. The functions that add ops (matmul(g, x, w), rms_norm(g, x, w, eps), ...) stand
/// beside the ops. A shape fault does not interrupt model code: the first one is kept and returned
/// by finish().
class GraphBuilder {
 public:
  GraphBuilder(const WeightTable& weights, RowBucket bucket) : weights_(weights) {
    graph_.bucket = bucket;
  }

  /// Goes on with a recorded graph.
  GraphBuilder(const WeightTable& weights, Graph graph)
      : weights_(weights), graph_(std::move(graph)) {}

  [[nodiscard]] RowBucket bucket() const { return graph_.bucket; }
  [[nodiscard]] const ValueDesc& desc(ValueId value) const { return graph_.values[index(value)]; }

  /// Appends `op`; the result has the shape that its shape rule gives.
  ValueId add(AnyOp op, std::initializer_list<ValueId> inputs);

  /// The recorded graph with its result; or the first shape fault.
  Result<Graph> finish(ValueId result);

 private:
  const WeightTable& weights_;
  Graph graph_;
  std::optional<Error> fault_;
};

}  // namespace hearth::graph
