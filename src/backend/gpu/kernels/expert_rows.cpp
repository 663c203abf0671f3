// A threadgroup per expert, which reads the routing of all rows: how many entries belong to experts
// before it says where its own go, and no threadgroup waits for another. Each thread takes a run of
// neighbouring entries, so that order is kept. Bound by latency.

#include "backend/gpu/kernels/expert_rows.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

DEVICE_FN u32 expert_of(DEVICE(const f32) routing, u32 entry, u32 n_used) {
  return u32(routing[u64(entry) + entry / n_used * n_used]);
}

/// The tile with which an expert begins whose entries begin at `first`: tiles of experts before it
/// end there at the latest.
DEVICE_FN u32 first_tile(PARAMS(ExpertRowsParams) p, u32 expert, u32 first) {
  return first / p.tile_entries + expert;
}

KERNEL(expert_rows, EXPERT_ROWS_THREADS, ExpertRowsParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, routing), BUFFER(2, u32, entries), BUFFER(3, u32, tiles)) {
  SHARED_ARRAY(u32, before, EXPERT_ROWS_THREADS);  // entries of experts before this one, by thread
  SHARED_ARRAY(u32, own, EXPERT_ROWS_THREADS);
  const u32 expert = k_group.x;
  const u32 n = counts[0] * p.n_used;
  const u32 per_thread = (n + EXPERT_ROWS_THREADS - 1u) / EXPERT_ROWS_THREADS;
  const u32 begin = min_u32(k_thread.x * per_thread, n);
  const u32 end = min_u32(begin + per_thread, n);
  u32 n_before = 0;
  u32 n_own = 0;
  for (u32 entry = begin; entry < end; ++entry) {
    const u32 chosen = expert_of(routing, entry, p.n_used);
    n_before += chosen < expert ? 1u : 0u;
    n_own += chosen == expert ? 1u : 0u;
  }
  before[k_thread.x] = n_before;
  own[k_thread.x] = n_own;
  group_barrier();

  u32 first = 0;   // of the expert's entries
  u32 n_mine = 0;  // entries of the expert
  u32 at = 0;      // where the thread's own go
  for (u32 i = 0; i < EXPERT_ROWS_THREADS; ++i) {
    at = i == k_thread.x ? n_mine : at;
    first += before[i];
    n_mine += own[i];
  }
  at += first;
  for (u32 entry = begin; entry < end; ++entry) {
    if (expert_of(routing, entry, p.n_used) == expert) {
      entries[at] = entry;
      ++at;
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
