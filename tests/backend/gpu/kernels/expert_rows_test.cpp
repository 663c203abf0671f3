#include "backend/gpu/kernels/expert_rows.h"

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"

namespace hearth::backend::gpu {
namespace {

/// Routing of rows that have chosen `experts`.
std::vector<float> routing_of(const std::vector<std::vector<u32>>& experts, std::size_t capacity) {
  std::vector<float> routing;
  for (const auto& row : experts) {
    routing.insert(routing.end(), row.begin(), row.end());
    routing.insert(routing.end(), row.size(), 0.5f);
  }
  routing.resize(capacity * 2 * experts.front().size(), 0.0f);
  return routing;
}

TEST(GpuExpertRows, BringsTheRowsOfEachExpertTogetherInOrder) {
  // Expert 2 has six entries, expert 3 none, row 6 is masked.
  const std::vector<std::vector<u32>> experts{{2, 0}, {1, 2}, {2, 4}, {2, 0}, {2, 1}, {4, 2}};
  constexpr std::size_t capacity = 7;
  const ExpertRowsParams params{
      .n_used = 2, .n_experts = 5, .tile_entries = 4, .n_tiles = EXPERT_TILES(14, 5, 4)};
  const auto results = run_everywhere(call(KernelId::expert_rows,
                                           {counts(6), contents(routing_of(experts, capacity)),
                                            poisoned(2 * capacity), poisoned(3 * params.n_tiles)},
                                           params, {params.n_experts}, {EXPERT_ROWS_THREADS}));

  auto entries = values<u32>(results[2]);
  entries.resize(12);
  EXPECT_EQ(entries, (std::vector<u32>{1, 7, 2, 9, 0, 3, 4, 6, 8, 11, 5, 10}));
  const auto tiles = values<u32>(results[3]);
  std::vector<std::vector<u32>> filled;
  for (std::size_t i = 0; i < params.n_tiles; ++i) {
    if (tiles[3 * i + 2] != 0) {
      filled.push_back({tiles[3 * i], tiles[3 * i + 1], tiles[3 * i + 2]});
    }
  }
  EXPECT_EQ(filled, (std::vector<std::vector<u32>>{
                        {0, 0, 2}, {1, 2, 2}, {2, 4, 4}, {2, 8, 2}, {4, 10, 2}}));
}

TEST(GpuExpertRows, HasRoomForWhateverIsChosen) {
  constexpr u32 n_experts = 3;
  constexpr std::size_t n_rows = 600;  // more than threads
  for (const u32 only : {0u, 1u, 2u}) {
    const std::vector<std::vector<u32>> experts(n_rows, {only});
    const ExpertRowsParams params{.n_used = 1,
                                  .n_experts = n_experts,
                                  .tile_entries = 64,
                                  .n_tiles = EXPERT_TILES(n_rows, n_experts, 64)};
    const auto results = run_everywhere(call(KernelId::expert_rows,
                                             {counts(n_rows), contents(routing_of(experts, n_rows)),
                                              poisoned(n_rows), poisoned(3 * params.n_tiles)},
                                             params, {n_experts}, {EXPERT_ROWS_THREADS}));
    const auto entries = values<u32>(results[2]);
    const auto tiles = values<u32>(results[3]);
    std::vector<u32> covered;
    for (std::size_t i = 0; i < params.n_tiles; ++i) {
      for (u32 j = 0; j < tiles[3 * i + 2]; ++j) {
        EXPECT_EQ(tiles[3 * i], only);
        covered.push_back(entries[tiles[3 * i + 1] + j]);
      }
    }
    std::vector<u32> all(n_rows);
    for (u32 i = 0; i < n_rows; ++i) {
      all[i] = i;
    }
    EXPECT_EQ(covered, all);
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
