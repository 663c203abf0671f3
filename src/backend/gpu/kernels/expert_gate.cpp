// A threadgroup has some strips of one expert of a row. Each works out norm and choice for itself,
// side by side: the first eight simdgroups the input, the others the experts. Then simdgroups take
// turns with blocks (kernels/strip_tile.h), and a thread per result adds up what they say. 26 KiB
// of shared memory. Bound by the latency of all this, since the weights cannot be asked for before
// the experts are known.

#include "backend/gpu/kernels/expert_gate.h"

#include "backend/gpu/kernels/router_ranks.h"
#include "backend/gpu/kernels/strip_sums.h"

namespace hearth::backend::gpu {

#define ROUTING_THREADS (STRIP_THREADS / 2)

/// Loads block `item` of the threadgroup's strips of gate and up.
DEVICE_FN void load_gate(PARAMS(ExpertGateParams) p, u64 expert_row, u32 first_strip, u32 item,
                         DEVICE(const u8) gate, DEVICE(const u8) up, u32 lane,
                         THREAD_REF(StripTile) tile) {
  const u32 n_blocks = p.n / 256;
  const u32 strip = item / (2 * n_blocks);
  const u32 unit = item - strip * 2 * n_blocks;
  const bool is_up = unit >= n_blocks;
  const u32 block_bytes = strip_block_bytes(p.type);
  const u32 row_bytes = n_blocks * block_bytes;
  const u64 at = (expert_row + p.first_row[is_up ? 1 : 0]) * row_bytes;
  const u32 begin = u32(at % 16u) + (is_up ? unit - n_blocks : unit) * block_bytes;
  const u32 output = (first_strip + strip) * STRIP_ROWS + lane / 4;
  const StripPlace place = {begin + min_u32(output, p.n_out - 1u) * row_bytes,
                            begin + min_u32(output + 8, p.n_out - 1u) * row_bytes};
  tile_load(p.type, (is_up ? up : gate) + (at - at % 16u), place, lane, tile);
}

EARLY_KERNEL(expert_gate, STRIP_THREADS, ExpertGateParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, logits),
             BUFFER(4, const u8, gate), BUFFER(5, const u8, up), BUFFER(6, f32, routing),
             BUFFER(7, f32, y)) {
  SHARED_ARRAY(f32, work, EXPERT_MAX_IN);  // x, then what blocks say
  SHARED_ARRAY(f32, values, ROUTER_MAX_EXPERTS);
  SHARED_ARRAY(u32, codes, (EXPERT_MAX_IN / 256 * STRIP_BLOCK_WORDS));
  SHARED_ARRAY(u8, digits, (EXPERT_MAX_IN / 256 * STRIP_DIGIT_BYTES));
  SHARED_ARRAY(f32, scales, (EXPERT_MAX_IN / 256));
  SHARED_ARRAY(u32, chosen, ROUTER_MAX_USED);
  SHARED_ARRAY(f32, maxima, (ROUTING_THREADS / 32));
  SHARED_ARRAY(f32, once, 2);  // 1 / sqrt(mean square), sum of exponentials
  const u32 row = k_group.z;
  const bool routes = k_thread.x >= ROUTING_THREADS;
  const u32 router_thread = k_thread.x - ROUTING_THREADS;
  if (p.has_norm != 0u && 32 * k_thread.x < p.n) {
    prefetch(norm + 32 * k_thread.x);
  }
  wait_for_kernel_before();
  if (row >= counts[0]) {
    return;
  }
  DEVICE(const f32) row_logits = logits + u64(row) * p.n_experts;
  copy_values(x + u64(row) * p.n, p.n, work, k_thread.x, STRIP_THREADS);
  if (routes) {
    const f32 maximum = largest_logit(row_logits, p.n_experts, router_thread, ROUTING_THREADS);
    if (k_lane == 0u) {
      maxima[router_thread / 32] = maximum;
    }
  }
  group_barrier();
  if (routes) {
    const f32 maximum = simd_max_f32(maxima[k_lane % (ROUTING_THREADS / 32)]);
    for (u32 i = router_thread; i < p.n_experts; i += ROUTING_THREADS) {
      values[i] = exp_f32(row_logits[i] - maximum);
    }
  } else if (k_simdgroup == 0u && p.has_norm != 0u) {
    const f32 sum = sum_lanes(add_squares(work, p.n, k_lane, 0.0f));
    if (k_lane == 0u) {
      once[0] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
    }
  }
  group_barrier();
  if (k_simdgroup == STRIP_SIMDGROUPS - 1u) {
    const f32 sum = sum_exponentials(values, p.n_experts, k_lane);
    if (k_lane == 0u) {
      once[1] = sum;
    }
  }
  if (!routes) {
    for (u32 block = k_simdgroup; block < p.n / 256; block += ROUTING_THREADS / 32) {
      const u32 in_row = 256 * block + LANE_VALUES * k_lane;
      f32x4 low = load4(work + in_row);
      f32x4 high = load4(work + in_row + 4);
      if (p.has_norm != 0u) {
        low = low * once[0] * load4(norm + in_row);
        high = high * once[0] * load4(norm + in_row + 4);
      }
      quantize_block(low, high, k_lane, codes + block * STRIP_BLOCK_WORDS,
                     digits + block * STRIP_DIGIT_BYTES, scales + block);
    }
  }
  group_barrier();
  const f32 sum = once[1];
  for (u32 i = k_thread.x; i < p.n_experts; i += STRIP_THREADS) {
    values[i] = values[i] / sum;
  }
  group_barrier();
  if (!chooses_by_rounds(p.n_experts)) {
    choose_experts(values, p.n_experts, p.n_used, sum, chosen, k_thread.x, STRIP_THREADS);
  } else if (k_simdgroup == 0u) {
    choose_by_rounds(values, p.n_experts, p.n_used, sum, chosen, k_lane);
  }
  group_barrier();

  // The loads first: writing the routing can wait.
  const u32 n_blocks = p.n / 256;
  const u32 n_units = 2 * n_blocks;
  const u32 n_strips = (p.n_out + STRIP_ROWS - 1u) / STRIP_ROWS;
  const u32 first_strip = k_group.x * p.group_strips;
  const u32 n_items = (min_u32(first_strip + p.group_strips, n_strips) - first_strip) * n_units;
  const u64 expert_row = u64(chosen[k_group.y]) * p.expert_rows;
  const bool writes_routing = k_group.x == 0u && k_group.y == 0u && k_simdgroup == 0u;
  StripTile tile;
  if (k_simdgroup < n_items) {
    load_gate(p, expert_row, first_strip, k_simdgroup, gate, up, k_lane, tile);
  }
  if (writes_routing) {
    write_routing(values, chosen, p.n_used, k_lane, 32, routing + u64(row) * 2u * p.n_used);
  }
  for (u32 item = k_simdgroup; item < n_items; item += STRIP_SIMDGROUPS) {
    const StripTile now = tile;
    if (item + STRIP_SIMDGROUPS < n_items) {
      load_gate(p, expert_row, first_strip, item + STRIP_SIMDGROUPS, gate, up, k_lane, tile);
    }
    const u32 unit = item % n_units;
    const u32 block = unit >= n_blocks ? unit - n_blocks : unit;
    const StripCodes mine = strip_codes(digits + block * STRIP_DIGIT_BYTES, k_lane);
    StripProduct product;
    tile_multiply(p.type, now, codes + block * STRIP_BLOCK_WORDS, mine, true, product);
    store_product(product, 1, true, k_lane, work + item * STRIP_BLOCK_FLOATS(1));
  }
  group_barrier();
  // Results of gate and up are in the two halves of a simdgroup.
  const u32 half_row = k_thread.x / STRIP_ROWS;
  const u32 strip = min_u32(half_row / 2, n_items / n_units - 1u);
  const f32 result =
      sum_strip(work + (strip * n_units + half_row % 2 * n_blocks) * STRIP_BLOCK_FLOATS(1), 1, true,
                n_blocks, k_thread.x % STRIP_ROWS, 0, p.type != STRIP_Q6_K, scales);
  const f32 other = shuffle_xor(result, STRIP_ROWS);
  const u32 output = (first_strip + strip) * STRIP_ROWS + k_thread.x % STRIP_ROWS;
  if (half_row % 2 == 0u && half_row / 2 == strip && output < p.n_out) {
    y[(u64(row) * p.n_used + k_group.y) * p.n_out + output] =
        activate_f32(p.activation, result) * other;
  }
}

}  // namespace hearth::backend::gpu
