#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "plan/launch.h"

namespace hearth::plan {

/// Where a value lives: `offset` bytes into the arena.
struct Placement {
  std::int64_t offset = -1;  // -1: the value was fused away and lives nowhere
  std::int64_t bytes = 0;
};

/// Cache traffic of one attention layer.
struct KvCost {
  std::int64_t key_bytes = 0;  // one key with its value
  std::int64_t window = 0;     // keys a row sees at most; 0: all
};

/// What one step costs, counted from the launches: independent of the machine, so tests can hold
/// it.
struct StepCost {
  std::int64_t n_launches = 0;
  std::int64_t weight_bytes = 0;     // weights read once per step, whatever the rows
  std::int64_t embed_row_bytes = 0;  // embedding bytes gathered per row
  std::vector<KvCost> kv;            // per attention layer
  std::int64_t arena_bytes = 0;

  /// Bytes of weights and cache that a step of `rows` rows moves when each row stands after
  /// `context` keys, its own included: keys and values in sight are read, the row's own written.
  [[nodiscard]] std::int64_t bytes(std::int64_t rows, std::int64_t context) const;
};

struct Options {
  bool fuse = true;  // off: every node is a launch of its own (reference interpreter, debugging)
  DType kv_dtype = DType::f16;
};

/// A fixed list of launches with every buffer placed. Nothing in it depends on the step: lengths,
/// positions and slots are read from the step block, so it is built once per row bucket and run any
/// number of times.
struct Plan {
  graph::RowBucket bucket;
  std::vector<graph::ValueDesc> values;
  std::vector<Launch> launches;
  std::vector<Placement> placements;  // by ValueId
  graph::ValueId logits{};
  StepCost cost;
};

Plan make_plan(const graph::Graph& graph, const graph::WeightTable& weights,
               const Options& options);

/// One line per launch with what it reads and writes, then the cost.
std::string to_string(const Plan& plan);

}  // namespace hearth::plan
