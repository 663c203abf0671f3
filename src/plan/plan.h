#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

/// Weights that products by chosen experts read: those of each expert that a row of the step chose.
struct ExpertCost {
  std::int64_t n_experts = 0;
  std::int64_t n_used = 0;        // by each row
  std::int64_t expert_bytes = 0;  // of one expert

  /// As expected of rows that choose independently, each expert equally often: one is left out by
  /// all of them with probability (1 - n_used / n_experts)^rows.
  [[nodiscard]] std::int64_t bytes(std::int64_t rows) const;
};

/// What one step costs, counted from the launches: independent of the machine, so tests can hold
/// it.
struct StepCost {
  std::int64_t n_launches = 0;
  std::int64_t weight_bytes = 0;     // weights read once per step, whatever the rows
  std::int64_t embed_row_bytes = 0;  // embedding bytes gathered per row
  std::vector<ExpertCost> experts;   // per launch
  std::vector<KvCost> kv;            // per attention layer
  std::int64_t state_bytes = 0;      // recurrent state of one sequence
  std::int64_t arena_bytes = 0;

  /// Bytes of weights, cache and state that a step of `rows` rows moves when each is a sequence of
  /// its own and stands after `context` keys, its own included: keys and values in sight are read,
  /// the row's own written, and recurrent state is read and written. Of experts as many as are
  /// expected.
  [[nodiscard]] std::int64_t bytes(std::int64_t rows, std::int64_t context) const;
};

struct Options {
  bool fuse = true;  // off: every node is a launch of its own (reference interpreter, debugging)
  DType kv_dtype = DType::f16;
  /// Neighbouring launches that an executor may run as one: the values that they read keep their
  /// places until all of them have run.
  std::size_t merged_launches = 1;
};

/// A fixed list of launches with every buffer placed. Nothing in it depends on the step: lengths,
/// positions and slots are read from the step block, so it is built once per row bucket and run any
/// number of times.
struct Plan {
  graph::RowBucket bucket;
  std::vector<graph::ValueDesc> values;
  std::vector<Launch> launches;
  std::vector<Placement> placements;  // by ValueId
  graph::ValueId result{};
  StepCost cost;
};

Plan make_plan(const graph::Graph& graph, const graph::WeightTable& weights,
               const Options& options);

/// The names of the launches, in order.
std::vector<std::string_view> launch_names(const Plan& plan);

/// One line per launch with what it reads and writes, then the cost.
std::string to_string(const Plan& plan);

}  // namespace hearth::plan
