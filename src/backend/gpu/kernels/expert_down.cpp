// A threadgroup has 16 results of a row: its simdgroups take turns with the tiles of all experts
// (kernels/row_tile.h), then a thread adds up what one expert says of one result, and one thread
// those of a result in order. 20 KiB of shared memory. Bound by latency: of the input, of the
// weights, which nobody can ask for before the experts are known.

#include "backend/gpu/kernels/expert_down.h"

#include "backend/gpu/kernels/small_tile.h"

namespace hearth::backend::gpu {

/// A tile of the threadgroup's strip.
struct DownTile {
  bool is_shared;
  u32 slot;
  u32 block;  // of the slot's row
  u32 type;
};

DEVICE_FN DownTile down_tile(PARAMS(ExpertDownParams) p, u32 unit) {
  const u32 n_blocks = p.n / 256;
  const u32 slot = unit / n_blocks;
  DownTile result = {slot >= p.n_used, slot, unit - slot * n_blocks, p.type};
  if (result.is_shared) {
    result.slot = p.n_used;
    result.block = unit - p.n_used * n_blocks;
    result.type = p.shared_type;
  }
  return result;
}

/// Float of `work` at which what tile `block` of a slot says begins.
DEVICE_FN u32 down_terms(PARAMS(ExpertDownParams) p, u32 slot, u32 block) {
  const u32 of_experts = slot * (p.n / 256) * STRIP_ROW_TERMS(p.type);
  return of_experts +
         block * (slot == p.n_used ? STRIP_ROW_TERMS(p.shared_type) : STRIP_ROW_TERMS(p.type));
}

/// Byte of its matrix at which it begins.
DEVICE_FN u64 down_place(PARAMS(ExpertDownParams) p, DownTile at, u32 strip, u32 expert) {
  const u64 strips = at.is_shared ? 0u : (u64(expert) * p.expert_rows + p.first_row) / TILE_ROWS;
  const u32 n_blocks = (at.is_shared ? p.shared_n : p.n) / 256;
  return ((strips + strip) * n_blocks + at.block) * strip_tile_bytes(at.type);
}

EARLY_KERNEL(expert_down, DOWN_THREADS, ExpertDownParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, routing), BUFFER(3, const f32, residual),
             BUFFER(4, const u8, weight), BUFFER(5, const f32, shared_x),
             BUFFER(6, const f32, shared_gate), BUFFER(7, const f32, row_gate),
             BUFFER(8, const u8, shared_weight), BUFFER(9, f32, y)) {
  SHARED_ARRAY(f32, work, DOWN_WORK);
  SHARED_ARRAY(u32, all_codes, (DOWN_SIMDGROUPS * STRIP_BLOCK_WORDS));
  SHARED_ARRAY(i32, all_sums, (DOWN_SIMDGROUPS * ROW_SUMS));
  SHARED_ARRAY(f32, all_scales, (STRIP_MAX_BLOCKS * SMALL_RUNS));
  SHARED_ARRAY(f32, said, (DOWN_MAX_SLOTS * STRIP_ROWS));
  SHARED_ARRAY(f32, slot_weights, DOWN_MAX_SLOTS);
  const u32 row = k_group.y;
  const u32 n_blocks = p.n / 256;
  const u32 n_units = p.n_used * n_blocks + p.shared_n / 256;
  const u32 output = k_group.x * STRIP_ROWS + k_thread.x;
  const bool is_last = k_thread.x < STRIP_ROWS && output < p.n_out;
  SHARED(u32) codes = all_codes + k_simdgroup * STRIP_BLOCK_WORDS;
  SHARED(i32) sums = all_sums + k_simdgroup * ROW_SUMS;
  DownTile at = down_tile(p, k_simdgroup);
  StripTile tile;
  if (at.is_shared && k_simdgroup < n_units) {
    load_tile(at.type, shared_weight + down_place(p, at, k_group.x, 0), k_lane, tile);
  }
  wait_for_kernel_before();
  if (row != 0u) {
    if (row >= counts[0]) {
      return;
    }
  }
  DEVICE(const f32) experts = routing + u64(row) * 2u * p.n_used;
  // What the last threads need, asked for early.
  f32 slot_weight = 0.0f;
  if (k_thread.x < p.n_used) {
    slot_weight = experts[p.n_used + k_thread.x];
  }
  f32 before = 0.0f;
  f32 share = 0.0f;
  if (is_last && p.has_residual != 0u) {
    before = residual[u64(row) * p.n_out + output];
  }
  if (is_last && p.shared_n != 0u) {
    share = row_gate[row];
  }
  f32 choice = 0.0f;
  if (!at.is_shared && k_simdgroup < n_units) {
    choice = experts[at.slot];
  }
  if (row == 0u && counts[0] == 0u) {  // asked for with the rest: nobody waits for it before
    return;
  }
  for (u32 unit = k_simdgroup; unit < n_units; unit += DOWN_SIMDGROUPS) {
    at = down_tile(p, unit);
    f32x4 low;
    f32x4 high;
    if (at.is_shared) {
      if (unit != k_simdgroup) {
        load_tile(at.type, shared_weight + down_place(p, at, k_group.x, 0), k_lane, tile);
      }
      const u64 from = u64(row) * p.shared_n + at.block * 256 + LANE_VALUES * k_lane;
      f32x4 gate_low = load4(shared_gate + from);
      const f32x4 gate_high = load4(shared_gate + from + 4);
      low = load4(shared_x + from);
      high = load4(shared_x + from + 4);
      KEEP_LOOP for (u32 i = 0; i < 2; ++i) {  // low, then high
        const f32x4 gated = low * activate4(p.activation, gate_low);
        low = high;
        gate_low = gate_high;
        high = gated;
      }
    } else {
      const u64 from = u64(row) * p.n_used * p.n + unit * 256 + LANE_VALUES * k_lane;
      const u32 expert = u32(unit == k_simdgroup ? choice : experts[at.slot]);
      low = load4(x + from);
      high = load4(x + from + 4);
      load_tile(at.type, weight + down_place(p, at, k_group.x, expert), k_lane, tile);
    }
    SHARED(f32) scales = all_scales + unit * SMALL_RUNS;
    quantize_for(at.type, low, high, k_lane, codes, sums, scales);
    simdgroup_barrier();
    multiply_for(at.type, tile, weight, codes, sums, scales, k_lane,
                 work + down_terms(p, at.slot, at.block));
    simdgroup_barrier();  // the codes have been used
  }
  if (k_thread.x < p.n_used) {
    slot_weights[k_thread.x] = slot_weight;
  }
  if (is_last && p.shared_n != 0u) {
    share = activate_f32(p.row_activation, share);
  }
  group_barrier();
  const u32 slot = k_thread.x / STRIP_ROWS;
  if (slot < p.n_used + (p.shared_n != 0u ? 1u : 0u)) {
    const bool is_shared = slot == p.n_used;
    said[k_thread.x] = sum_terms_of(
        is_shared ? p.shared_type : p.type, work + down_terms(p, slot, 0), k_thread.x % STRIP_ROWS,
        all_scales + slot * n_blocks * SMALL_RUNS, (is_shared ? p.shared_n : p.n) / 256);
  }
  group_barrier();
  if (is_last) {
    f32 sum = 0.0f;
    for (u32 i = 0; i < p.n_used; ++i) {
      sum = fma_f32(slot_weights[i], said[i * STRIP_ROWS + k_thread.x], sum);
    }
    f32 result = p.has_residual != 0u ? sum + before : sum;
    if (p.shared_n != 0u) {
      result = result + said[p.n_used * STRIP_ROWS + k_thread.x] * share;
    }
    y[u64(row) * p.n_out + output] = result;
  }
}

}  // namespace hearth::backend::gpu
