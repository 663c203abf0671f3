#pragma once

#include <string>
#include <vector>

#include "graph/ops/all_ops.h"
#include "graph/value.h"

namespace hearth::graph {

/// Capacity of a step: a graph is recorded, and a plan built, once per row bucket.
struct RowBucket {
  std::int64_t rows = 0;
  std::int64_t logit_rows = 0;

  auto operator<=>(const RowBucket&) const = default;
};

struct Node {
  AnyOp op;
  std::vector<ValueId> inputs;
  ValueId output{};
};

/// A recorded model step: nodes in an order in which each reads only what came before.
struct Graph {
  RowBucket bucket;
  std::vector<ValueDesc> values;  // by ValueId
  std::vector<Node> nodes;
  ValueId result{};  // logits [logit rows, vocab], unless more was recorded
};

/// One line per node: "%7 [rows 64, 576] = matmul(%6)".
std::string to_string(const Graph& graph);

}  // namespace hearth::graph
