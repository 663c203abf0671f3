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

}  // namespace hearth::backend::gpu
