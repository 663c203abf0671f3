// A threadgroup has some strips of one expert of a row. Each works out norm and choice for itself,
// side by side: of each 32 experts a simdgroup finds the first eight, then all simdgroups the first
// of those, and one of the others adds up the norm. Then simdgroups take turns with tiles
// (kernels/row_tile.h), two at a time, and a thread per result adds up what they say. 31 KiB of
// shared memory. Bound by the latency of all this, since the weights cannot be asked for before the
// experts are known.

#include "backend/gpu/kernels/expert_gate.h"

#include "backend/gpu/kernels/router_ranks.h"
#include "backend/gpu/kernels/small_tile.h"

namespace hearth::backend::gpu {

#define GATE_TILES 2  // of a simdgroup that are on their way at once
#define ROUTING_SIMDGROUP (STRIP_SIMDGROUPS - 1)
#define NORM_SIMDGROUP (STRIP_SIMDGROUPS - 2)

/// A tile of the threadgroup's strips: of a strip those of gate come first.
struct GateTile {
  u32 strip;
  u32 block;
  u32 is_up;
};

DEVICE_FN GateTile gate_tile(u32 item, u32 n_blocks) {
  GateTile result;
  result.strip = item / (2 * n_blocks);
  const u32 unit = item - result.strip * 2 * n_blocks;
  result.is_up = unit >= n_blocks ? 1u : 0u;
  result.block = unit - result.is_up * n_blocks;
  return result;
}

EARLY_KERNEL(expert_gate, STRIP_THREADS, ExpertGateParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, logits),
             BUFFER(4, const u8, gate), BUFFER(5, const u8, up), BUFFER(6, f32, routing),
             BUFFER(7, f32, y)) {
  SHARED_ARRAY(f32, work, EXPERT_WORK);  // x, then what tiles say
  SHARED_ARRAY(u32, codes, (EXPERT_MAX_IN / 256 * STRIP_BLOCK_WORDS));
  SHARED_ARRAY(i32, sums, (EXPERT_MAX_IN / 256 * ROW_SUMS));
  SHARED_ARRAY(f32, scales, (EXPERT_MAX_IN / 256 * SMALL_RUNS));
  SHARED_ARRAY(u32, chosen, ROUTER_MAX_USED);
  SHARED_ARRAY(f32, probabilities, ROUTER_MAX_USED);
  SHARED_ARRAY(f32, inverse, 1);
  SHARED_ARRAY(u32, first_keys, CHOICE_KEYS);
  SHARED_ARRAY(u32, first_experts, CHOICE_KEYS);
  SHARED(f32) exponentials = work + N_LANES * COLUMN_STRIDE(EXPERT_MAX_IN);  // behind x
  SHARED(u32) keys = as_words(exponentials) + CHOICE_GROUPS * CHOICE_GROUP;
  const u32 row = k_group.z;
  const u32 n_blocks = p.n / 256;
  const bool has_norm = p.has_norm != 0u;
  const bool has_input = k_simdgroup < n_blocks;
  const bool routes = k_simdgroup == ROUTING_SIMDGROUP;
  const u32 in_row = 256 * k_simdgroup + LANE_VALUES * k_lane;
  f32x4 norm_low = make4(0, 0, 0, 0);
  f32x4 norm_high = norm_low;
  if (has_norm && has_input) {
    norm_low = load4(norm + in_row);
    norm_high = load4(norm + in_row + 4);
  }
  const u32 n_strips = (p.n_out + STRIP_ROWS - 1u) / STRIP_ROWS;
  const u32 first_strip = k_group.x * p.group_strips;
  const u32 n_items =
      (min_u32(first_strip + p.group_strips, n_strips) - first_strip) * 2 * n_blocks;
  wait_for_kernel_before();
  if (row != 0u) {
    if (row >= counts[0]) {
      return;
    }
  }
  f32x4 low = make4(0, 0, 0, 0);
  f32x4 high = low;
  if (has_input) {
    low = load4(x + u64(row) * p.n + in_row);
    high = load4(x + u64(row) * p.n + in_row + 4);
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
    store_in_columns(low, high, in_row, COLUMN_STRIDE(p.n), work);
  }
  if (row == 0u && counts[0] == 0u) {  // asked for with the rest: nobody waits for it before
    return;
  }
  group_barrier();
  if (has_group) {
    const f32 sum = choice_sum(exponentials, p.n_experts, k_lane);
    const u32 key = choice_key(exponentials[k_thread.x], sum, k_thread.x, p.n_experts);
    keys[k_thread.x] = key;
    simdgroup_barrier();
    const u32 rank = keys_before(keys + CHOICE_GROUP * k_simdgroup, CHOICE_GROUP, key, k_lane);
    if (rank < CHOICE_USED) {
      first_keys[CHOICE_USED * k_simdgroup + rank] = key;
      first_experts[CHOICE_USED * k_simdgroup + rank] = k_thread.x;
    }
  } else if (routes && !by_groups) {
    route_row(values, p.n_experts, p.n_used, k_lane, chosen, probabilities);
  } else if (has_norm && k_simdgroup == NORM_SIMDGROUP) {
    const f32 squares = sum_lanes(
        add_column_squares(work + k_lane % N_LANES * COLUMN_STRIDE(p.n), p.n / N_LANES, 0.0f));
    if (k_lane == 0u) {
      inverse[0] = 1.0f / sqrt_f32(squares / f32(p.n) + p.eps);
    }
  }
  group_barrier();
  if (by_groups) {
    // Eight lanes for each of the first of all groups.
    const u32 place = k_thread.x / 8;
    const u32 part = k_thread.x % 8 * 8;
    const u32 key = first_keys[place];
    u32 rank = keys_before(first_keys + part, 8, key, place < part ? 0u : place - part);
    rank += shuffle_xor(rank, 1);
    rank += shuffle_xor(rank, 2);
    rank += shuffle_xor(rank, 4);
    if (part == 0u && rank < p.n_used) {
      chosen[rank] = first_experts[place];
      probabilities[rank] = f32_of_bits(key - 1u);
    }
    group_barrier();
  }

  // The weights first: the input is codes before they are there.
  const u64 expert_row = u64(chosen[k_group.y]) * p.expert_rows;
  const u32 tile_bytes = strip_tile_bytes(p.type);
  const u32 strip_bytes = n_blocks * tile_bytes;
  for (u32 first = k_simdgroup; first < n_items || first == k_simdgroup;
       first += GATE_TILES * STRIP_SIMDGROUPS) {
    StripTile tiles[GATE_TILES];
    UNROLL for (u32 i = 0; i < GATE_TILES; ++i) {
      const u32 item = first + i * STRIP_SIMDGROUPS;
      if (item < n_items) {
        const GateTile at = gate_tile(item, n_blocks);
        const u64 strip = (expert_row + p.first_row[at.is_up]) / TILE_ROWS + first_strip + at.strip;
        load_tile(p.type,
                  (at.is_up != 0u ? up : gate) + (strip * strip_bytes + at.block * tile_bytes),
                  k_lane, tiles[i]);
      }
    }
    if (first == k_simdgroup) {
      if (has_norm) {
        low = low * inverse[0] * norm_low;
        high = high * inverse[0] * norm_high;
      }
      if (has_input) {
        quantize_for(p.type, low, high, k_lane, codes + k_simdgroup * STRIP_BLOCK_WORDS,
                     sums + k_simdgroup * ROW_SUMS, scales + k_simdgroup * SMALL_RUNS);
      }
      group_barrier();
    }
    UNROLL for (u32 i = 0; i < GATE_TILES; ++i) {
      const u32 item = first + i * STRIP_SIMDGROUPS;
      if (item < n_items) {
        const u32 block = gate_tile(item, n_blocks).block;
        multiply_for(p.type, tiles[i], gate, codes + block * STRIP_BLOCK_WORDS,
                     sums + block * ROW_SUMS, scales + block * SMALL_RUNS, k_lane,
                     work + item * STRIP_ROW_TERMS(p.type));
      }
    }
  }
  group_barrier();
  // Results of gate and up are in the two halves of a simdgroup.
  const u32 half_row = k_thread.x / STRIP_ROWS;
  const u32 strip = half_row / 2;
  const bool is_result = half_row * n_blocks < n_items;
  f32 result = 0.0f;
  if (is_result) {
    result = sum_terms_of(p.type, work + half_row * n_blocks * STRIP_ROW_TERMS(p.type),
                          k_thread.x % STRIP_ROWS, scales, n_blocks);
  }
  const f32 other = shuffle_xor(result, STRIP_ROWS);
  const u32 output = (first_strip + strip) * STRIP_ROWS + k_thread.x % STRIP_ROWS;
  if (half_row % 2 == 0u && is_result && output < p.n_out) {
    y[(u64(row) * p.n_used + k_group.y) * p.n_out + output] =
        activate_f32(p.activation, result) * other;
  }
  // By a simdgroup that has had no result, where there are as few strips as there should be.
  if (k_group.x == 0u && k_group.y == 0u && routes) {
    f32 sum = 0.0f;
    for (u32 slot = 0; slot < p.n_used; ++slot) {
      sum += probabilities[slot];
    }
    for (u32 slot = k_lane; slot < p.n_used; slot += 32) {
      const u64 to = u64(row) * 2u * p.n_used + slot;
      routing[to] = f32(chosen[slot]);
      routing[to + p.n_used] = probabilities[slot] / sum;
    }
  }
}

}  // namespace hearth::backend::gpu
