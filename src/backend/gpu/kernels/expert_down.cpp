// A threadgroup has 16 results of a row: its simdgroups take turns with the blocks of 16 rows by
// 256 weights of all experts (kernels/strip_tile.h), then a thread adds up what one expert says of
// one result, and one thread those of a result in order. 30 KiB of shared memory. Bound by latency:
// of the input, of the weights, which nobody can ask for before the experts are known.

#include "backend/gpu/kernels/expert_down.h"

#include "backend/gpu/kernels/strip_sums.h"

namespace hearth::backend::gpu {

/// A block of the threadgroup's strip.
struct DownBlock {
  bool is_shared;
  u32 slot;
  u32 block;  // of the slot's row
};

DEVICE_FN DownBlock down_block(PARAMS(ExpertDownParams) p, u32 unit) {
  const u32 n_blocks = p.n / 256;
  const u32 slot = unit / n_blocks;
  DownBlock result = {slot >= p.n_used, slot, unit - slot * n_blocks};
  if (result.is_shared) {
    result.slot = p.n_used;
    result.block = unit - p.n_used * n_blocks;
  }
  return result;
}

/// Loads a block; `is_early` only asks the device to have it at hand.
DEVICE_FN void load_down(PARAMS(ExpertDownParams) p, DownBlock at, u32 first_output,
                         DEVICE(const f32) experts, DEVICE(const u8) weight,
                         DEVICE(const u8) shared_weight, u32 lane, bool is_early,
                         THREAD_REF(StripTile) tile) {
  const u32 type = at.is_shared ? p.shared_type : p.type;
  const u32 block_bytes = strip_block_bytes(type);
  const u32 row_bytes = (at.is_shared ? p.shared_n : p.n) / 256 * block_bytes;
  u64 first = 0;
  if (!at.is_shared) {
    first = (u64(u32(experts[at.slot])) * p.expert_rows + p.first_row) * row_bytes;
  }
  const u32 begin = u32(first % 16u) + at.block * block_bytes;
  const u32 row = first_output + lane / 4;
  const StripPlace place = {begin + min_u32(row, p.n_out - 1u) * row_bytes,
                            begin + min_u32(row + 8, p.n_out - 1u) * row_bytes};
  DEVICE(const u8) from = (at.is_shared ? shared_weight : weight) + (first - first % 16u);
  if (is_early) {
    prefetch(from + place.row0 + lane % 2 * (block_bytes - 1u));
    prefetch(from + place.row8 + lane % 2 * (block_bytes - 1u));
  } else {
    tile_load(type, from, place, lane, tile);
  }
}

EARLY_KERNEL(expert_down, STRIP_THREADS, ExpertDownParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, routing), BUFFER(3, const f32, residual),
             BUFFER(4, const u8, weight), BUFFER(5, const f32, shared_x),
             BUFFER(6, const f32, shared_gate), BUFFER(7, const f32, row_gate),
             BUFFER(8, const u8, shared_weight), BUFFER(9, f32, y)) {
  SHARED_ARRAY(f32, work, (STRIP_MAX_BLOCKS * STRIP_BLOCK_FLOATS(1)));
  SHARED_ARRAY(u32, codes, (STRIP_MAX_BLOCKS * STRIP_BLOCK_WORDS));
  SHARED_ARRAY(u8, digits, (STRIP_MAX_BLOCKS * STRIP_DIGIT_BYTES));
  SHARED_ARRAY(f32, scales, STRIP_MAX_BLOCKS);
  SHARED_ARRAY(f32, said, (DOWN_MAX_SLOTS * STRIP_ROWS));
  const u32 row = k_group.y;
  wait_for_kernel_before();
  if (row >= counts[0]) {
    return;
  }
  const u32 n_blocks = p.n / 256;
  const u32 n_units = p.n_used * n_blocks + p.shared_n / 256;
  const u32 first_output = k_group.x * STRIP_ROWS;
  DEVICE(const f32) experts = routing + u64(row) * 2u * p.n_used;
  DownBlock mine = down_block(p, k_simdgroup);
  StripTile tile;
  if (k_simdgroup < n_units) {
    load_down(p, mine, first_output, experts, weight, shared_weight, k_lane, false, tile);
  }
  if (k_simdgroup + STRIP_SIMDGROUPS < n_units) {
    load_down(p, down_block(p, k_simdgroup + STRIP_SIMDGROUPS), first_output, experts, weight,
              shared_weight, k_lane, true, tile);
  }
  // What the last threads need, asked for early.
  const u32 output = first_output + k_thread.x;
  const bool is_last = k_thread.x < STRIP_ROWS && output < p.n_out;
  f32 before = 0.0f;
  f32 share = 0.0f;
  if (is_last && p.has_residual != 0u) {
    before = residual[u64(row) * p.n_out + output];
  }
  if (is_last && p.shared_n != 0u) {
    share = row_gate[row];
  }
  for (u32 i = k_thread.x; i < p.shared_n; i += STRIP_THREADS) {
    const u64 at = u64(row) * p.shared_n + i;
    work[i] = shared_x[at] * activate_f32(p.activation, shared_gate[at]);
  }
  group_barrier();
  for (u32 unit = k_simdgroup; unit < n_units; unit += STRIP_SIMDGROUPS) {
    const u32 in_shared = (unit - p.n_used * n_blocks) * 256 + LANE_VALUES * k_lane;
    f32x4 low;
    f32x4 high;
    if (unit < p.n_used * n_blocks) {
      DEVICE(const f32) from = x + (u64(row) * p.n_used * p.n + unit * 256 + LANE_VALUES * k_lane);
      low = load4(from);
      high = load4(from + 4);
    } else {
      low = load4(work + in_shared);
      high = load4(work + in_shared + 4);
    }
    quantize_block(low, high, k_lane, codes + unit * STRIP_BLOCK_WORDS,
                   digits + unit * STRIP_DIGIT_BYTES, scales + unit);
  }
  group_barrier();

  for (u32 unit = k_simdgroup; unit < n_units; unit += STRIP_SIMDGROUPS) {
    if (unit != k_simdgroup) {
      mine = down_block(p, unit);
      load_down(p, mine, first_output, experts, weight, shared_weight, k_lane, false, tile);
    }
    const StripCodes row_codes = strip_codes(digits + unit * STRIP_DIGIT_BYTES, k_lane);
    StripProduct product;
    tile_multiply(mine.is_shared ? p.shared_type : p.type, tile, codes + unit * STRIP_BLOCK_WORDS,
                  row_codes, true, product);
    store_product(product, 1, true, k_lane, work + unit * STRIP_BLOCK_FLOATS(1));
  }
  group_barrier();
  const u32 slot = k_thread.x / STRIP_ROWS;
  if (slot < p.n_used + (p.shared_n != 0u ? 1u : 0u)) {
    const bool is_shared = slot == p.n_used;
    said[k_thread.x] =
        sum_strip(work + slot * n_blocks * STRIP_BLOCK_FLOATS(1), 1, true,
                  (is_shared ? p.shared_n : p.n) / 256, k_thread.x % STRIP_ROWS, 0,
                  (is_shared ? p.shared_type : p.type) != STRIP_Q6_K, scales + slot * n_blocks);
  }
  group_barrier();
  if (is_last) {
    f32 sum = 0.0f;
    for (u32 i = 0; i < p.n_used; ++i) {
      sum = fma_f32(experts[p.n_used + i], said[i * STRIP_ROWS + k_thread.x], sum);
    }
    f32 result = p.has_residual != 0u ? sum + before : sum;
    if (p.shared_n != 0u) {
      result =
          result + said[p.n_used * STRIP_ROWS + k_thread.x] * activate_f32(p.row_activation, share);
    }
    y[u64(row) * p.n_out + output] = result;
  }
}

}  // namespace hearth::backend::gpu
