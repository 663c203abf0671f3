// As expert_down.cpp, for several strips of a row: a simdgroup has one slot, an expert or the
// shared one, and keeps the chains of its strips in registers (kernels/own_chains.h), so all
// threadgroups run at once. 26 KiB of shared memory. Bound by memory, behind the latency of the
// input and of the choice.

#include "backend/gpu/kernels/expert_down.h"
#include "backend/gpu/kernels/own_chains.h"
#include "backend/gpu/kernels/row_parts.h"

namespace hearth::backend::gpu {

EARLY_KERNEL(expert_down_rows, STRIP_THREADS, ExpertDownParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, routing), BUFFER(3, const f32, residual),
             BUFFER(4, const u8, weight), BUFFER(5, const f32, shared_x),
             BUFFER(6, const f32, shared_gate), BUFFER(7, const f32, row_gate),
             BUFFER(8, const u8, shared_weight), BUFFER(9, f32, y)) {
  SHARED_ARRAY(u32, codes, (STRIP_MAX_BLOCKS * STRIP_BLOCK_WORDS));
  SHARED_ARRAY(i32, sums, (STRIP_MAX_BLOCKS * ROW_SUMS));
  SHARED_ARRAY(f32, scales, (STRIP_MAX_BLOCKS * SMALL_RUNS));
  SHARED_ARRAY(f32, said, (DOWN_MAX_SLOTS * DOWN_MAX_STRIPS * STRIP_ROWS));
  SHARED_ARRAY(f32, slot_weights, DOWN_MAX_SLOTS);
  const u32 row = k_group.y;
  const u32 n_slots = p.n_used + (p.shared_n != 0u ? 1u : 0u);
  const u32 n_teams = STRIP_SIMDGROUPS / n_slots;
  const u32 team = k_simdgroup / n_slots;
  const u32 slot = k_simdgroup - team * n_slots;
  const bool is_shared = slot == p.n_used;
  const u32 type = is_shared ? p.shared_type : p.type;
  const u32 n_blocks = (is_shared ? p.shared_n : p.n) / 256;
  // Of the threadgroup's strips the team has some that lie together.
  const u32 n_strips = (p.n_out + STRIP_ROWS - 1u) / STRIP_ROWS;
  const u32 begin = k_group.x * p.group_strips;
  const u32 end = min_u32(begin + p.group_strips, n_strips);
  const u32 for_team = (end - begin + n_teams - 1u) / n_teams;
  const u32 first = begin + team * for_team;
  const u32 n_chains = first < end ? min_u32(for_team, end - first) : 0u;
  const u32 tile_bytes = strip_tile_bytes(type);
  RowChainTile own[2];
  DEVICE(const u8) from = shared_weight + u64(first * n_blocks) * tile_bytes;
  if (is_shared) {
    UNROLL for (u32 i = 0; i < 2; ++i) {
      if (i < n_chains * n_blocks) {
        load_chain_tile(type, from + i * tile_bytes, k_lane, own[i]);
      }
    }
  }
  wait_for_kernel_before();
  if (row >= counts[0]) {
    return;
  }
  DEVICE(const f32) experts = routing + u64(row) * 2u * p.n_used;
  // What the last threads need, asked for early.
  const u32 output = begin * STRIP_ROWS + k_thread.x;
  const bool is_last = k_thread.x < (end - begin) * STRIP_ROWS && output < p.n_out;
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
  if (!is_shared && n_chains != 0u) {
    const u64 first_row = u64(u32(experts[slot])) * p.expert_rows + p.first_row;
    from = weight + (first_row / TILE_ROWS + first) * (n_blocks * tile_bytes);
    UNROLL for (u32 i = 0; i < 2; ++i) {
      if (i < n_chains * n_blocks) {
        load_chain_tile(type, from + i * tile_bytes, k_lane, own[i]);
      }
    }
  }
  const u32 first_block = slot * (p.n / 256);
  for (u32 block = team; block < n_blocks; block += n_teams) {
    const u32 in_slot = block * 256 + LANE_VALUES * k_lane;
    RowValues values;
    if (is_shared) {
      const u64 at = u64(row) * p.shared_n + in_slot;
      values = load_values(shared_x + at);
      values = gated(p.activation, values, load_values(shared_gate + at));
    } else {
      values = load_values(x + ((u64(row) * p.n_used + slot) * p.n + in_slot));
    }
    const u32 to = first_block + block;
    quantize_for(type, values.low, values.high, k_lane, codes + to * STRIP_BLOCK_WORDS,
                 sums + to * ROW_SUMS, scales + to * SMALL_RUNS);
  }
  if (k_thread.x < p.n_used) {
    slot_weights[k_thread.x] = slot_weight;
  }
  if (is_last && p.shared_n != 0u) {
    share = activate_f32(p.row_activation, share);
  }
  group_barrier();
  const u32 slot_floats = p.group_strips * STRIP_ROWS;
  if (n_chains != 0u) {
    multiply_own_chains(type, from, n_chains, n_blocks, codes + first_block * STRIP_BLOCK_WORDS,
                        sums + first_block * ROW_SUMS, scales + first_block * SMALL_RUNS, k_lane,
                        own, said + (slot * slot_floats + (first - begin) * STRIP_ROWS));
  }
  group_barrier();
  if (is_last) {
    f32 sum = 0.0f;
    for (u32 i = 0; i < p.n_used; ++i) {
      sum = fma_f32(slot_weights[i], said[i * slot_floats + k_thread.x], sum);
    }
    f32 result = p.has_residual != 0u ? sum + before : sum;
    if (p.shared_n != 0u) {
      result = result + said[p.n_used * slot_floats + k_thread.x] * share;
    }
    y[u64(row) * p.n_out + output] = result;
  }
}

}  // namespace hearth::backend::gpu
