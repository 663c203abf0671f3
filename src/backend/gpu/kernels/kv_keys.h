#pragma once
/// Which keys a query sees, and where they are.

#include "backend/gpu/kernels/kv_panel.h"

namespace hearth::backend::gpu {

/// What a threadgroup reads: panels of one key/value head, by the block table of the row.
struct KvHead {
  u32 head_dim;
  u32 n_kv_heads;
  u32 kv_head;
};

/// Keys [begin, end) of the part that begins at `start`.
struct KeyRange {
  u32 start;
  u32 begin;
  u32 end;
};

/// The first key that a query at `position` sees.
DEVICE_FN u32 first_key_seen(u32 position, u32 window) {
  return window == 0u || position < window ? 0u : position - window + 1u;
}

DEVICE_FN u64 panel_start(u32 type, KvHead head, DEVICE(const i32) table, u32 position) {
  const u32 block = u32(table[position / ATTENTION_BLOCK_KEYS]);
  return (u64(block) * head.n_kv_heads + head.kv_head) * kv_panel_bytes(type, head.head_dim);
}

/// What a query at `position` sees of a part.
DEVICE_FN KeyRange keys_of_part(u32 part, u32 position, u32 first_key) {
  const u32 start = part * ATTENTION_PART_KEYS;
  const KeyRange range = {start, max_u32(start, first_key),
                          min_u32(start + ATTENTION_PART_KEYS, position + 1u)};
  return range;
}

/// Query heads that a threadgroup serves, all of one key/value head.
struct HeadRun {
  u32 kv_head;
  u32 first_head;
  u32 n_heads;
};

/// Run `index` of the grid, if a threadgroup serves up to `served` heads.
DEVICE_FN HeadRun head_run(PARAMS(AttentionParams) p, u32 index, u32 served) {
  const u32 group = p.n_heads / p.n_kv_heads;
  const u32 n_runs = (group + served - 1) / served;
  const u32 in_group = index % n_runs * served;
  const u32 kv_head = index / n_runs;
  const HeadRun run = {kv_head, kv_head * group + in_group, min_u32(served, group - in_group)};
  return run;
}

}  // namespace hearth::backend::gpu
