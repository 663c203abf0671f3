#pragma once
/// Rows that have chosen experts, for tests of products whose rows are brought together by expert.

#include <cstdint>
#include <vector>

#include "backend/gpu/kernels/expert_rows.h"
#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {

inline constexpr u32 n_test_experts = 5;
inline constexpr u32 n_test_used = 2;

/// Expert 0 for every row, experts 1 and 2 for some, expert 3 for one, expert 4 for none.
inline graph::Matrix some_routing(std::int64_t rows) {
  graph::Matrix routing = graph::random_matrix(rows, 2 * n_test_used, 9);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto at = static_cast<std::size_t>(row * 2 * n_test_used);
    routing.data[at + static_cast<std::size_t>(row % 2)] = 0.0f;
    routing.data[at + static_cast<std::size_t>(1 - row % 2)] =
        row == 4 ? 3.0f : static_cast<float>(1 + row % 3 % 2);
  }
  return routing;
}

/// What expert_rows makes of it.
struct ExpertGroups {
  std::vector<u32> entries;
  std::vector<u32> tiles;
};

inline ExpertGroups groups_of(const graph::Matrix& routing, u32 tile_entries) {
  const auto n_entries = static_cast<u32>(routing.rows) * n_test_used;
  const ExpertRowsParams params{.n_used = n_test_used,
                                .n_experts = n_test_experts,
                                .tile_entries = tile_entries,
                                .n_tiles = EXPERT_TILES(n_entries, n_test_experts, tile_entries)};
  const auto grouped =
      run_everywhere(call(KernelId::expert_rows,
                          {counts(static_cast<u32>(routing.rows)), contents(routing.data),
                           poisoned(n_entries), poisoned(3 * params.n_tiles)},
                          params, {n_test_experts}, {EXPERT_ROWS_THREADS}));
  return {values<u32>(grouped[2]), values<u32>(grouped[3])};
}

}  // namespace hearth::backend::gpu
