// As expert_gate.cpp, for several rows: a simdgroup has a strip of gate or of up for itself and
// keeps its chains in registers (kernels/own_chains.h), so all threadgroups run at once, and
// weights never wait for sums. 27 KiB of shared memory. Bound by memory, behind the latency of norm
// and choice.

#include "backend/gpu/kernels/expert_gate.h"
#include "backend/gpu/kernels/own_chains.h"
#include "backend/gpu/kernels/router_ranks.h"
#include "backend/gpu/kernels/row_parts.h"

namespace hearth::backend::gpu {

#define ROUTING_SIMDGROUP (STRIP_SIMDGROUPS - 1)
#define NORM_SIMDGROUP (STRIP_SIMDGROUPS - 2)
#define COLUMN_FLOATS (N_LANES * COLUMN_STRIDE(EXPERT_MAX_IN))

EARLY_KERNEL(expert_gate_rows, STRIP_THREADS, ExpertGateParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, logits),
             BUFFER(4, const u8, gate), BUFFER(5, const u8, up), BUFFER(6, f32, routing),
             BUFFER(7, f32, y)) {
  SHARED_ARRAY(f32, columns, COLUMN_FLOATS);
  SHARED_ARRAY(f32, exponentials, (CHOICE_GROUPS * CHOICE_GROUP));
  SHARED_ARRAY(u32, keys, (CHOICE_GROUPS * CHOICE_GROUP));
  SHARED_ARRAY(u32, codes, (EXPERT_MAX_IN / 256 * STRIP_BLOCK_WORDS));
  SHARED_ARRAY(i32, sums, (EXPERT_MAX_IN / 256 * ROW_SUMS));
  SHARED_ARRAY(f32, scales, (EXPERT_MAX_IN / 256 * SMALL_RUNS));
  SHARED_ARRAY(u32, chosen, ROUTER_MAX_USED);
  SHARED_ARRAY(f32, probabilities, ROUTER_MAX_USED);
  SHARED_ARRAY(f32, inverse, 1);
  SHARED_ARRAY(u32, first_keys, CHOICE_KEYS);
  SHARED_ARRAY(u32, first_experts, CHOICE_KEYS);
  SHARED_ARRAY(f32, results, (STRIP_SIMDGROUPS * STRIP_ROWS));
  const u32 row = k_group.z;
  const u32 n_blocks = p.n / 256;
  const bool has_norm = p.has_norm != 0u;
  const bool has_input = k_simdgroup < n_blocks;
  const bool routes = k_simdgroup == ROUTING_SIMDGROUP;
  const u32 in_row = 256 * k_simdgroup + LANE_VALUES * k_lane;
  RowValues weights = {make4(0, 0, 0, 0), make4(0, 0, 0, 0)};
  if (has_norm && has_input) {
    weights = load_values(norm + in_row);
  }
  wait_for_kernel_before();
  if (row >= counts[0]) {
    return;
  }
  RowValues input = {make4(0, 0, 0, 0), make4(0, 0, 0, 0)};
  if (has_input) {
    input = load_values(x + u64(row) * p.n + in_row);
  }
  DEVICE(const f32) row_logits = logits + u64(row) * p.n_experts;
  const bool by_groups = p.n_experts <= CHOICE_GROUPS * CHOICE_GROUP && p.n_used <= CHOICE_USED;
  const bool has_group = by_groups && k_simdgroup < CHOICE_GROUPS;
  f32 values[ROUTE_VALUES];
  if (has_group) {
    exponentials[k_thread.x] = choice_exponential(row_logits, p.n_experts, k_simdgroup, k_lane);
  } else if (routes && !by_groups) {
    load_route(row_logits, p.n_experts, k_lane, values);
  }
  if (has_norm && has_input) {
    store_in_columns(input.low, input.high, in_row, COLUMN_STRIDE(p.n), columns);
  }
  group_barrier();
  if (has_group) {
    choose_of_group(exponentials, p.n_experts, k_simdgroup, k_lane, keys, first_keys,
                    first_experts);
  } else if (routes && !by_groups) {
    route_row(values, p.n_experts, p.n_used, k_lane, chosen, probabilities);
  } else if (has_norm && k_simdgroup == NORM_SIMDGROUP) {
    const f32 squares = sum_lanes(
        add_column_squares(columns + k_lane % N_LANES * COLUMN_STRIDE(p.n), p.n / N_LANES, 0.0f));
    if (k_lane == 0u) {
      inverse[0] = 1.0f / sqrt_f32(squares / f32(p.n) + p.eps);
    }
  }
  group_barrier();
  if (has_group) {
    choose_of_first(first_keys, first_experts, p.n_used, k_thread.x, chosen, probabilities);
  }
  if (by_groups) {
    group_barrier();
  }

  // The weights first: the input is codes before they are there.
  const u32 n_strips = (p.n_out + STRIP_ROWS - 1u) / STRIP_ROWS;
  const u32 first_strip = k_group.x * p.group_strips;
  const u32 is_up = k_simdgroup % 2;
  const u32 strip = k_simdgroup / 2;
  const bool has_strip = strip < p.group_strips && first_strip + strip < n_strips;
  const u32 tile_bytes = strip_tile_bytes(p.type);
  const u64 first_row = u64(chosen[k_group.y]) * p.expert_rows + p.first_row[is_up];
  DEVICE(const u8)
  from = (is_up != 0u ? up : gate) +
         (first_row / TILE_ROWS + first_strip + strip) * (n_blocks * tile_bytes);
  RowChainTile own[2];
  UNROLL for (u32 i = 0; i < 2; ++i) {
    if (has_strip && i < n_blocks) {
      load_chain_tile(p.type, from + i * tile_bytes, k_lane, own[i]);
    }
  }
  if (has_norm) {
    input = normed(input, inverse[0], weights);
  }
  if (has_input) {
    quantize_for(p.type, input.low, input.high, k_lane, codes + k_simdgroup * STRIP_BLOCK_WORDS,
                 sums + k_simdgroup * ROW_SUMS, scales + k_simdgroup * SMALL_RUNS);
  }
  group_barrier();
  if (has_strip) {
    multiply_own_chains(p.type, from, 1, n_blocks, codes, sums, scales, k_lane, own,
                        results + k_simdgroup * STRIP_ROWS);
  }
  group_barrier();
  const u32 output = first_strip * STRIP_ROWS + k_thread.x;
  if (k_thread.x < p.group_strips * STRIP_ROWS && output < p.n_out) {
    SHARED(const f32)
    result = results + k_thread.x / STRIP_ROWS * 2 * STRIP_ROWS + k_lane % STRIP_ROWS;
    y[(u64(row) * p.n_used + k_group.y) * p.n_out + output] =
        activate_f32(p.activation, result[0]) * result[STRIP_ROWS];
  }
  if (k_group.x == 0u && k_group.y == 0u && routes) {
    write_choice(chosen, probabilities, p.n_used, k_lane, routing + u64(row) * 2u * p.n_used);
  }
}

}  // namespace hearth::backend::gpu
