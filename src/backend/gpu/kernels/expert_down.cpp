// For one row. A threadgroup has 16 results: its simdgroups take turns with the tiles of all
// experts (kernels/row_tile.h), then a thread adds up what one expert says of one result, and one
// thread those of a result in order. A kernel for each type, which the shared expert has too, has
// half the code that the one for any two types has, which is fetched anew in every layer. 20 KiB of
// shared memory. Bound by latency: of the input, of the weights, which nobody can ask for before
// the experts are known.

#include "backend/gpu/kernels/expert_down.h"

#include "backend/gpu/kernels/row_parts.h"
#include "backend/gpu/kernels/small_tile.h"

namespace hearth::backend::gpu {

/// A tile of the threadgroup's strip.
struct DownTile {
  bool is_shared;
  u32 slot;
  u32 block;  // of the slot's row
};

DEVICE_FN DownTile down_tile(PARAMS(ExpertDownParams) p, u32 unit) {
  const u32 n_blocks = p.n / 256;
  DownTile result = {unit >= p.n_used * n_blocks, 0, unit};
  KEEP_LOOP while (result.slot < p.n_used && result.block >= n_blocks) {
    result.block -= n_blocks;
    ++result.slot;
  }
  return result;
}

/// Byte at which the tile begins: of the shared matrix, or of that of all experts.
DEVICE_FN u64 shared_place(PARAMS(ExpertDownParams) p, u32 type, DownTile at, u32 strip) {
  return (u64(strip) * (p.shared_n / 256) + at.block) * strip_tile_bytes(type);
}
DEVICE_FN u64 expert_place(PARAMS(ExpertDownParams) p, u32 type, DownTile at, u32 strip,
                           u32 expert) {
  const u64 first = (u64(expert) * p.expert_rows + p.first_row) / TILE_ROWS;
  return ((first + strip) * (p.n / 256) + at.block) * strip_tile_bytes(type);
}

/// What a tile multiplies; of the shared expert with its gate.
struct DownInput {
  RowValues values;
  RowValues gate;
};

DEVICE_FN DownInput load_down_input(DownTile at, u32 unit, DEVICE(const f32) x,
                                    DEVICE(const f32) shared_x, DEVICE(const f32) shared_gate,
                                    u32 lane) {
  const u32 in_row = LANE_VALUES * lane;
  DownInput input;
  if (at.is_shared) {
    const u32 from = at.block * 256 + in_row;
    input.values = load_values(shared_x + from);
    input.gate = load_values(shared_gate + from);
  } else {
    input.values = load_values(x + (unit * 256 + in_row));
  }
  return input;
}

#define DOWN_KERNEL(name, of_type, of_shared)                                                      \
  EARLY_KERNEL(                                                                                    \
      name, DOWN_THREADS, ExpertDownParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x), \
      BUFFER(2, const f32, routing), BUFFER(3, const f32, residual), BUFFER(4, const u8, weight),  \
      BUFFER(5, const f32, shared_x), BUFFER(6, const f32, shared_gate),                           \
      BUFFER(7, const f32, row_gate), BUFFER(8, const u8, shared_weight), BUFFER(9, f32, y)) {     \
    SHARED_ARRAY(f32, work, DOWN_WORK);                                                            \
    SHARED_ARRAY(u32, all_codes, (DOWN_SIMDGROUPS * STRIP_BLOCK_WORDS));                           \
    SHARED_ARRAY(i32, all_sums, (DOWN_SIMDGROUPS * ROW_SUMS));                                     \
    SHARED_ARRAY(f32, all_scales, (STRIP_MAX_BLOCKS * SMALL_RUNS));                                \
    SHARED_ARRAY(f32, said, (DOWN_MAX_SLOTS * STRIP_ROWS));                                        \
    SHARED_ARRAY(f32, slot_weights, DOWN_MAX_SLOTS);                                               \
    const u32 type = of_type;                                                                      \
    const u32 shared_type = of_shared;                                                             \
    const u32 n_blocks = p.n / 256;                                                                \
    const u32 n_units = p.n_used * n_blocks + p.shared_n / 256;                                    \
    const u32 shared_terms = p.n_used * n_blocks * STRIP_ROW_TERMS(type);                          \
    const u32 output = k_group.x * STRIP_ROWS + k_thread.x;                                        \
    const bool is_last = k_thread.x < STRIP_ROWS && output < p.n_out;                              \
    SHARED(u32) codes = all_codes + k_simdgroup * STRIP_BLOCK_WORDS;                               \
    SHARED(i32) sums = all_sums + k_simdgroup * ROW_SUMS;                                          \
    const bool has_unit = k_simdgroup < n_units;                                                   \
    DownTile at = down_tile(p, k_simdgroup);                                                       \
    StripTile tile;                                                                                \
    if (at.is_shared && has_unit) {                                                                \
      load_tile(shared_type, shared_weight + shared_place(p, shared_type, at, k_group.x), k_lane,  \
                tile);                                                                             \
    }                                                                                              \
    wait_for_kernel_before();                                                                      \
    f32 choice = 0.0f;                                                                             \
    DownInput input;                                                                               \
    if (has_unit) {                                                                                \
      if (!at.is_shared) {                                                                         \
        choice = routing[at.slot];                                                                 \
      }                                                                                            \
      input = load_down_input(at, k_simdgroup, x, shared_x, shared_gate, k_lane);                  \
    }                                                                                              \
    /* What the last threads need, asked for early. */                                             \
    f32 slot_weight = 0.0f;                                                                        \
    if (k_thread.x < p.n_used) {                                                                   \
      slot_weight = routing[p.n_used + k_thread.x];                                                \
    }                                                                                              \
    f32 before = 0.0f;                                                                             \
    f32 share = 0.0f;                                                                              \
    if (is_last && p.has_residual != 0u) {                                                         \
      before = residual[output];                                                                   \
    }                                                                                              \
    if (is_last && p.shared_n != 0u) {                                                             \
      share = row_gate[0];                                                                         \
    }                                                                                              \
    if (counts[0] == 0u) { /* asked for with the rest: nobody waits for it before */               \
      return;                                                                                      \
    }                                                                                              \
    for (u32 unit = k_simdgroup; unit < n_units; unit += DOWN_SIMDGROUPS) {                        \
      if (unit != k_simdgroup) {                                                                   \
        at = down_tile(p, unit);                                                                   \
        input = load_down_input(at, unit, x, shared_x, shared_gate, k_lane);                       \
        if (at.is_shared) {                                                                        \
          load_tile(shared_type, shared_weight + shared_place(p, shared_type, at, k_group.x),      \
                    k_lane, tile);                                                                 \
        }                                                                                          \
      }                                                                                            \
      if (at.is_shared) {                                                                          \
        input.values = gated(p.activation, input.values, input.gate);                              \
      } else {                                                                                     \
        const u32 expert = u32(unit == k_simdgroup ? choice : routing[at.slot]);                   \
        load_tile(type, weight + expert_place(p, type, at, k_group.x, expert), k_lane, tile);      \
      }                                                                                            \
      const u32 unit_type = at.is_shared ? shared_type : type;                                     \
      const u32 terms = at.is_shared ? shared_terms + at.block * STRIP_ROW_TERMS(shared_type)      \
                                     : unit * STRIP_ROW_TERMS(type);                               \
      SHARED(f32) scales = all_scales + unit * SMALL_RUNS;                                         \
      quantize_for(unit_type, input.values.low, input.values.high, k_lane, codes, sums, scales);   \
      simdgroup_barrier();                                                                         \
      multiply_for(unit_type, tile, weight, codes, sums, scales, k_lane, work + terms);            \
      simdgroup_barrier(); /* the codes have been used */                                          \
    }                                                                                              \
    if (k_thread.x < p.n_used) {                                                                   \
      slot_weights[k_thread.x] = slot_weight;                                                      \
    }                                                                                              \
    if (is_last && p.shared_n != 0u) {                                                             \
      share = activate_f32(p.row_activation, share);                                               \
    }                                                                                              \
    group_barrier();                                                                               \
    const u32 slot = k_thread.x / STRIP_ROWS;                                                      \
    if (slot < p.n_used + (p.shared_n != 0u ? 1u : 0u)) {                                          \
      const bool is_shared = slot == p.n_used;                                                     \
      said[k_thread.x] = sum_terms_of(                                                             \
          is_shared ? shared_type : type, work + slot * n_blocks * STRIP_ROW_TERMS(type),          \
          k_thread.x % STRIP_ROWS, all_scales + slot * n_blocks * SMALL_RUNS,                      \
          (is_shared ? p.shared_n : p.n) / 256);                                                   \
    }                                                                                              \
    group_barrier();                                                                               \
    if (is_last) {                                                                                 \
      f32 sum = 0.0f;                                                                              \
      for (u32 i = 0; i < p.n_used; ++i) {                                                         \
        sum = fma_f32(slot_weights[i], said[i * STRIP_ROWS + k_thread.x], sum);                    \
      }                                                                                            \
      f32 result = p.has_residual != 0u ? sum + before : sum;                                      \
      if (p.shared_n != 0u) {                                                                      \
        result = result + said[p.n_used * STRIP_ROWS + k_thread.x] * share;                        \
      }                                                                                            \
      y[output] = result;                                                                          \
    }                                                                                              \
  }

DOWN_KERNEL(expert_down, p.type, p.shared_type)
DOWN_KERNEL(expert_down_q4_k, u32(STRIP_Q4_K), u32(STRIP_Q4_K))
DOWN_KERNEL(expert_down_q5_k, u32(STRIP_Q5_K), u32(STRIP_Q5_K))
DOWN_KERNEL(expert_down_q6_k, u32(STRIP_Q6_K), u32(STRIP_Q6_K))
DOWN_KERNEL(expert_down_q8_0, u32(STRIP_Q8_0), u32(STRIP_Q8_0))
DOWN_KERNEL(expert_down_q4_0, u32(STRIP_Q4_0), u32(STRIP_Q4_0))
DOWN_KERNEL(expert_down_iq4_nl, u32(STRIP_IQ4_NL), u32(STRIP_IQ4_NL))
DOWN_KERNEL(expert_down_mxfp4, u32(STRIP_MXFP4), u32(STRIP_MXFP4))

}  // namespace hearth::backend::gpu
