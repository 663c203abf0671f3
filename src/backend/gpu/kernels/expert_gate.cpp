// For one row. A threadgroup has some strips of one expert. Each works out norm, codes and choice
// for itself, side by side: of each 32 experts a simdgroup finds the first eight, then these
// simdgroups the first of all, while the others norm and quantize the row. Then simdgroups take
// turns with tiles (kernels/row_tile.h), two at a time, and a thread per result adds up what they
// say. A kernel for one type, which chooses by groups alone, has less than half of the code of one
// for all types and numbers of experts; what a multiprocessor runs once a layer it fetches anew. 31
// KiB of shared memory. Bound by the latency of all this, since the weights cannot be asked for
// before the experts are known.

#include "backend/gpu/kernels/expert_gate.h"

#include "backend/gpu/kernels/router_ranks.h"
#include "backend/gpu/kernels/row_parts.h"
#include "backend/gpu/kernels/small_tile.h"

namespace hearth::backend::gpu {

#define ROUTING_SIMDGROUP (STRIP_SIMDGROUPS - 1)
#define FIRST_FREE_SIMDGROUP CHOICE_GROUPS  // the first that does not choose

/// A tile of the threadgroup's strips: of a strip those of gate come first.
struct GateTile {
  u32 strip;
  u32 unit;
};

/// The tile `step` tiles behind another.
DEVICE_FN GateTile gate_tile(GateTile from, u32 step, u32 n_units) {
  GateTile result = {from.strip, from.unit + step};
  KEEP_LOOP while (result.unit >= n_units) {
    result.unit -= n_units;
    ++result.strip;
  }
  return result;
}

/// A tile of the expert whose matrices begin with `gate` and `up`.
DEVICE_FN void load_gate_tile(PARAMS(ExpertGateParams) p, u32 type, GateTile at,
                              DEVICE(const u8) gate, DEVICE(const u8) up, u32 lane,
                              THREAD_REF(StripTile) tile) {
  const u32 n_blocks = p.n / 256;
  const bool is_up = at.unit >= n_blocks;
  const u32 strip = p.first_row[is_up ? 1 : 0] / TILE_ROWS + at.strip;
  const u32 block = is_up ? at.unit - n_blocks : at.unit;
  load_tile(type, (is_up ? up : gate) + (u64(strip) * n_blocks + block) * strip_tile_bytes(type),
            lane, tile);
}

#define GATE_KERNEL(name, of_type, is_by_groups)                                                   \
  EARLY_KERNEL(name, STRIP_THREADS, ExpertGateParams, BUFFER(0, const u32, counts),                \
               BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, logits),  \
               BUFFER(4, const u8, gate), BUFFER(5, const u8, up), BUFFER(6, f32, routing),        \
               BUFFER(7, f32, y)) {                                                                \
    SHARED_ARRAY(f32, work, EXPERT_WORK); /* x, then what tiles say */                             \
    SHARED_ARRAY(u32, codes, (EXPERT_MAX_IN / 256 * STRIP_BLOCK_WORDS));                           \
    SHARED_ARRAY(i32, sums, (EXPERT_MAX_IN / 256 * ROW_SUMS));                                     \
    SHARED_ARRAY(f32, scales, (EXPERT_MAX_IN / 256 * SMALL_RUNS));                                 \
    SHARED_ARRAY(u32, chosen, ROUTER_MAX_USED);                                                    \
    SHARED_ARRAY(f32, probabilities, ROUTER_MAX_USED);                                             \
    SHARED_ARRAY(f32, inverse, 1);                                                                 \
    SHARED_ARRAY(u32, first_keys, CHOICE_KEYS);                                                    \
    SHARED_ARRAY(u32, first_experts, CHOICE_KEYS);                                                 \
    SHARED(f32) exponentials = work + N_LANES * COLUMN_STRIDE(EXPERT_MAX_IN); /* behind x */       \
    SHARED(u32) keys = as_words(exponentials) + CHOICE_GROUPS * CHOICE_GROUP;                      \
    const u32 type = of_type;                                                                      \
    const bool by_groups = is_by_groups;                                                           \
    const u32 n_blocks = p.n / 256;                                                                \
    const bool has_norm = p.has_norm != 0u;                                                        \
    /* Of few blocks those who choose have none. */                                                \
    const u32 input_block = STRIP_SIMDGROUPS - 1u - k_simdgroup;                                   \
    const bool has_input = input_block < n_blocks;                                                 \
    const u32 in_row = 256 * input_block + LANE_VALUES * k_lane;                                   \
    RowValues weights = {make4(0, 0, 0, 0), make4(0, 0, 0, 0)};                                    \
    if (has_norm && has_input) {                                                                   \
      weights = load_values(norm + in_row);                                                        \
    }                                                                                              \
    const u32 n_strips = (p.n_out + STRIP_ROWS - 1u) / STRIP_ROWS;                                 \
    const u32 end_strip = min_u32((k_group.x + 1u) * p.group_strips, n_strips);                    \
    const GateTile first_tile = {k_group.x * p.group_strips, 0};                                   \
    GateTile at = gate_tile(first_tile, k_simdgroup, 2 * n_blocks);                                \
    wait_for_kernel_before();                                                                      \
    RowValues input = {make4(0, 0, 0, 0), make4(0, 0, 0, 0)};                                      \
    if (has_input) {                                                                               \
      input = load_values(x + in_row);                                                             \
    }                                                                                              \
    const bool chooses = by_groups && k_simdgroup < CHOICE_GROUPS;                                 \
    const bool routes = !by_groups && k_simdgroup == ROUTING_SIMDGROUP;                            \
    f32 values[ROUTE_VALUES];                                                                      \
    if (chooses) {                                                                                 \
      exponentials[k_thread.x] = choice_exponential(logits, p.n_experts, k_simdgroup, k_lane);     \
    }                                                                                              \
    if (routes) {                                                                                  \
      load_route(logits, p.n_experts, k_lane, values);                                             \
    }                                                                                              \
    if (has_norm && has_input) {                                                                   \
      store_in_columns(input.low, input.high, in_row, COLUMN_STRIDE(p.n), work);                   \
    }                                                                                              \
    if (counts[0] == 0u) { /* asked for with the rest: nobody waits for it before */               \
      return;                                                                                      \
    }                                                                                              \
    group_barrier();                                                                               \
    if (chooses) {                                                                                 \
      choose_of_group(exponentials, p.n_experts, k_simdgroup, k_lane, keys, first_keys,            \
                      first_experts);                                                              \
    } else if (has_norm && k_simdgroup == FIRST_FREE_SIMDGROUP) {                                  \
      const f32 squares = sum_lanes(                                                               \
          add_column_squares(work + k_lane % N_LANES * COLUMN_STRIDE(p.n), p.n / N_LANES, 0.0f));  \
      if (k_lane == 0u) {                                                                          \
        inverse[0] = 1.0f / sqrt_f32(squares / f32(p.n) + p.eps);                                  \
      }                                                                                            \
    }                                                                                              \
    if (routes) {                                                                                  \
      route_row(values, p.n_experts, p.n_used, k_lane, chosen, probabilities);                     \
    }                                                                                              \
    group_barrier();                                                                               \
    if (chooses) {                                                                                 \
      choose_of_first(first_keys, first_experts, p.n_used, k_thread.x, chosen, probabilities);     \
    }                                                                                              \
    group_barrier();                                                                               \
                                                                                                   \
    /* Those who chose ask for weights while the others quantize the row. */                       \
    if (has_input) {                                                                               \
      if (has_norm) {                                                                              \
        input = normed(input, inverse[0], weights);                                                \
      }                                                                                            \
      quantize_for(type, input.low, input.high, k_lane, codes + input_block * STRIP_BLOCK_WORDS,   \
                   sums + input_block * ROW_SUMS, scales + input_block * SMALL_RUNS);              \
    }                                                                                              \
    const u64 expert =                                                                             \
        u64(chosen[k_group.y]) * (p.expert_rows / TILE_ROWS * n_blocks) * strip_tile_bytes(type);  \
    StripTile tile;                                                                                \
    StripTile next_tile;                                                                           \
    GateTile next = gate_tile(at, STRIP_SIMDGROUPS, 2 * n_blocks);                                 \
    if (at.strip < end_strip) {                                                                    \
      load_gate_tile(p, type, at, gate + expert, up + expert, k_lane, tile);                       \
    }                                                                                              \
    if (next.strip < end_strip) {                                                                  \
      load_gate_tile(p, type, next, gate + expert, up + expert, k_lane, next_tile);                \
    }                                                                                              \
    group_barrier();                                                                               \
    KEEP_LOOP while (at.strip < end_strip) {                                                       \
      const u32 block = at.unit >= n_blocks ? at.unit - n_blocks : at.unit;                        \
      const u32 item = (at.strip - first_tile.strip) * 2 * n_blocks + at.unit;                     \
      multiply_for(type, tile, gate, codes + block * STRIP_BLOCK_WORDS, sums + block * ROW_SUMS,   \
                   scales + block * SMALL_RUNS, k_lane, work + item * STRIP_ROW_TERMS(type));      \
      at = next;                                                                                   \
      tile = next_tile;                                                                            \
      next = gate_tile(at, STRIP_SIMDGROUPS, 2 * n_blocks);                                        \
      if (next.strip < end_strip) {                                                                \
        load_gate_tile(p, type, next, gate + expert, up + expert, k_lane, next_tile);              \
      }                                                                                            \
    }                                                                                              \
    group_barrier();                                                                               \
    /* Results of gate and up are in the two halves of a simdgroup. */                             \
    const u32 half_row = k_thread.x / STRIP_ROWS;                                                  \
    const u32 strip = half_row / 2;                                                                \
    const bool is_result = first_tile.strip + strip < end_strip;                                   \
    f32 result = 0.0f;                                                                             \
    if (is_result) {                                                                               \
      result = sum_terms_of(type, work + half_row * n_blocks * STRIP_ROW_TERMS(type),              \
                            k_thread.x % STRIP_ROWS, scales, n_blocks);                            \
    }                                                                                              \
    const f32 other = shuffle_xor(result, STRIP_ROWS);                                             \
    const u32 output = (first_tile.strip + strip) * STRIP_ROWS + k_thread.x % STRIP_ROWS;          \
    if (half_row % 2 == 0u && is_result && output < p.n_out) {                                     \
      y[k_group.y * p.n_out + output] = activate_f32(p.activation, result) * other;                \
    }                                                                                              \
    /* By a simdgroup that has had no result, where there are as few strips as there should be. */ \
    if (k_group.x == 0u && k_group.y == 0u && k_simdgroup == ROUTING_SIMDGROUP) {                  \
      write_choice(chosen, probabilities, p.n_used, k_lane, routing);                              \
    }                                                                                              \
  }

GATE_KERNEL(expert_gate, p.type, false)
GATE_KERNEL(expert_gate_q4_k, u32(STRIP_Q4_K), true)
GATE_KERNEL(expert_gate_q5_k, u32(STRIP_Q5_K), true)
GATE_KERNEL(expert_gate_q6_k, u32(STRIP_Q6_K), true)
GATE_KERNEL(expert_gate_q8_0, u32(STRIP_Q8_0), true)
GATE_KERNEL(expert_gate_q4_0, u32(STRIP_Q4_0), true)
GATE_KERNEL(expert_gate_iq4_nl, u32(STRIP_IQ4_NL), true)
GATE_KERNEL(expert_gate_mxfp4, u32(STRIP_MXFP4), true)

}  // namespace hearth::backend::gpu
