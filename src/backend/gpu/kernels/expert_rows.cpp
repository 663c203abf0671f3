// A threadgroup per expert, which reads the routing of all rows: how many entries belong to experts
// before it says where its own go, and no threadgroup waits for another. Each thread takes a run of
// neighbouring rows, so that order is kept. Bound by latency.

#include "backend/gpu/kernels/expert_rows.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

/// The sum of the values of this and all lower lanes.
DEVICE_FN u32 sum_until(u32 value, u32 lane) {
  u32 sum = value;
  for (u32 distance = 1; distance < 32; distance *= 2) {
    const u32 other = shuffle(sum, lane >= distance ? lane - distance : 0u);
    sum += lane >= distance ? other : 0u;
  }
  return sum;
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
  const u32 per_thread = (counts[0] + EXPERT_ROWS_THREADS - 1u) / EXPERT_ROWS_THREADS;
  const u32 begin = min_u32(k_thread.x * per_thread, counts[0]);
  const u32 end = min_u32(begin + per_thread, counts[0]);
  u32 n_before = 0;
  u32 n_own = 0;
  for (u32 row = begin; row < end; ++row) {
    DEVICE(const f32) chosen = routing + u64(row) * 2 * p.n_used;
    for (u32 slot = 0; slot < p.n_used; ++slot) {
      n_before += u32(chosen[slot]) < expert ? 1u : 0u;
      n_own += u32(chosen[slot]) == expert ? 1u : 0u;
    }
  }
  const u32 all_before = simd_sum_u32(n_before);
  const u32 own_until = sum_until(n_own, k_lane);
  if (k_lane == 31u) {
    before[k_simdgroup] = all_before;
    own[k_simdgroup] = own_until;
  }
  group_barrier();

  u32 first = 0;               // of the expert's entries
  u32 n_mine = 0;              // entries of the expert
  u32 at = own_until - n_own;  // where the thread's own go
  for (u32 i = 0; i < EXPERT_ROWS_THREADS / 32; ++i) {
    at += i < k_simdgroup ? own[i] : 0u;
    first += before[i];
    n_mine += own[i];
  }
  at += first;
  for (u32 row = begin; n_own != 0u && row < end; ++row) {
    DEVICE(const f32) chosen = routing + u64(row) * 2 * p.n_used;
    for (u32 slot = 0; slot < p.n_used; ++slot) {
      if (u32(chosen[slot]) == expert) {
        entries[at] = row * p.n_used + slot;
        ++at;
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
