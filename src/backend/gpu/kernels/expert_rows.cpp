// A threadgroup per expert, which reads the routing of all rows: how many entries belong to experts
// before it says where its own go, and no threadgroup waits for another. Each simdgroup takes a run
// of neighbouring entries, 32 at a time, so that order is kept. Bound by latency.

#include "backend/gpu/kernels/expert_rows.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define ENTRY_STEPS 8u  // of 32 entries, whose loads do not wait for each other

/// The experts of ENTRY_STEPS entries of the lane, 32 apart; none of those from `end` on.
DEVICE_FN void load_chosen(PARAMS(ExpertRowsParams) p, DEVICE(const f32) routing, u32 entry,
                           u32 end, THREAD(u32) chosen) {
  f32 values[ENTRY_STEPS];
  UNROLL for (u32 i = 0; i < ENTRY_STEPS; ++i) {
    const u32 at = min_u32(entry + 32u * i, end - 1u);
    const u32 row = at / p.n_used;
    values[i] = routing[u64(row) * 2 * p.n_used + (at - row * p.n_used)];
  }
  UNROLL for (u32 i = 0; i < ENTRY_STEPS; ++i) {
    chosen[i] = entry + 32u * i < end ? u32(values[i]) : ~0u;
  }
}

/// The tile with which an expert begins whose entries begin at `first`: tiles of experts before it
/// end there at the latest.
DEVICE_FN u32 first_tile(PARAMS(ExpertRowsParams) p, u32 expert, u32 first) {
  return first / p.tile_entries + expert;
}

KERNEL(expert_rows, EXPERT_ROWS_THREADS, ExpertRowsParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, routing), BUFFER(2, u32, entries), BUFFER(3, u32, tiles)) {
  SHARED_ARRAY(u32, before, EXPERT_ROWS_THREADS / 32);  // entries of experts before this one
  SHARED_ARRAY(u32, own, EXPERT_ROWS_THREADS / 32);
  const u32 expert = k_group.x;
  const u32 n = counts[0] * p.n_used;
  const u32 per_simdgroup =
      (n + EXPERT_ROWS_THREADS - 1u) / EXPERT_ROWS_THREADS * 32u;  // entries, a multiple of 32
  const u32 begin = min_u32(k_simdgroup * per_simdgroup, n);
  const u32 end = min_u32(begin + per_simdgroup, n);
  u32 n_before = 0;
  u32 n_own = 0;
  for (u32 i = begin; i < end; i += 32 * ENTRY_STEPS) {
    u32 chosen[ENTRY_STEPS];
    load_chosen(p, routing, i + k_lane, end, chosen);
    UNROLL for (u32 j = 0; j < ENTRY_STEPS; ++j) {
      n_before += chosen[j] < expert ? 1u : 0u;
      n_own += chosen[j] == expert ? 1u : 0u;
    }
  }
  n_before = simd_sum_u32(n_before);
  n_own = simd_sum_u32(n_own);
  if (k_lane == 0u) {
    before[k_simdgroup] = n_before;
    own[k_simdgroup] = n_own;
  }
  group_barrier();

  u32 first = 0;   // of the expert's entries
  u32 n_mine = 0;  // entries of the expert
  u32 at = 0;      // where the simdgroup's own go
  for (u32 i = 0; i < EXPERT_ROWS_THREADS / 32; ++i) {
    at += i < k_simdgroup ? own[i] : 0u;
    first += before[i];
    n_mine += own[i];
  }
  at += first;
  for (u32 i = begin; n_own != 0u && i < end; i += 32 * ENTRY_STEPS) {
    u32 chosen[ENTRY_STEPS];
    load_chosen(p, routing, i + k_lane, end, chosen);
    UNROLL for (u32 j = 0; j < ENTRY_STEPS; ++j) {
      const bool is_own = chosen[j] == expert;
      const u32 n_found = simd_sum_u32(is_own ? 1u : 0u);
      if (n_found != 0u) {
        const u32 until = sum_until(is_own ? 1u : 0u, k_lane);
        if (is_own) {
          entries[at + until - 1u] = i + 32u * j + k_lane;
        }
        at += n_found;
      }
    }
  }

  const u32 tile = first_tile(p, expert, first);
  const u32 next =
      expert + 1u < p.n_experts ? first_tile(p, expert + 1u, first + n_mine) : p.n_tiles;
  for (u32 i = tile + k_thread.x; i < next; i += EXPERT_ROWS_THREADS) {
    const u32 skipped = min_u32((i - tile) * p.tile_entries, n_mine);
    tiles[3 * i] = expert;
    tiles[3 * i + 1] = first + skipped;
    tiles[3 * i + 2] = min_u32(n_mine - skipped, p.tile_entries);
  }
}

}  // namespace hearth::backend::gpu
