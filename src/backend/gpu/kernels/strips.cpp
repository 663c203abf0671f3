// A threadgroup multiplies one strip after the other, and its simdgroups take turns with the blocks
// of 16 rows by 256 weights that strips consist of; each has the next block in registers while it
// multiplies one. What blocks say goes to shared memory, where a thread per result adds it up in
// order of k. Codes and sums take 30 KiB. Bound by the latency of the input for small matrices, by
// memory for large ones.

#include "backend/gpu/kernels/strips.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/input_values.h"
#include "backend/gpu/kernels/strip_tile.h"

namespace hearth::backend::gpu {

/// What a threadgroup multiplies.
struct StripGroup {
  u32 part;
  u32 begin;  // strips [begin, end) of the part
  u32 end;
  u32 n_rows;    // of the step
  u32 n_blocks;  // of 256 weights in a row of the matrix
  u32 n_units;   // blocks of a strip: of a pair those of the gate, then those of the other
};

DEVICE_FN StripGroup strip_group(PARAMS(StripParams) p, u32 group) {
  StripGroup result;
  result.part = group < p.group_end[0] ? 0u : (group < p.group_end[1] ? 1u : 2u);
  const u32 skipped = result.part == 0u ? 0u : p.group_end[result.part - 1u];
  const u32 per_group = p.group_strips[result.part];
  const u32 n_strips = (p.n_out[result.part] + STRIP_ROWS - 1u) / STRIP_ROWS;
  result.begin = (group - skipped) * per_group;
  result.end = min_u32(result.begin + per_group, n_strips);
  result.n_rows = 0;
  result.n_blocks = p.input.n / 256;
  result.n_units = p.is_pair != 0u ? 2 * result.n_blocks : result.n_blocks;
  return result;
}

/// Block `item` of a threadgroup's strips, in the file's order of bytes.
struct StripItem {
  u32 strip;
  u32 unit;
};

DEVICE_FN StripItem strip_item(THREAD_REF(const StripGroup) group, u32 item) {
  const u32 strip = item / group.n_units;
  const StripItem result = {group.begin + strip, item - strip * group.n_units};
  return result;
}

/// Where its blocks begin; rows behind the matrix's last repeat that.
DEVICE_FN StripPlace strip_place(PARAMS(StripParams) p, THREAD_REF(const StripGroup) group,
                                 u64 expert_row, StripItem item, u32 block_bytes, u32 lane) {
  const bool is_second = item.unit >= group.n_blocks;
  const u32 block = is_second ? item.unit - group.n_blocks : item.unit;
  const u32 last = p.n_out[group.part] - 1u;
  const u32 row = item.strip * STRIP_ROWS + lane / 4;
  const u64 first =
      expert_row + (is_second ? p.first_row[1] : (group.part == 0u ? p.first_row[0] : 0u));
  const StripPlace place = {
      ((first + min_u32(row, last)) * group.n_blocks + block) * block_bytes,
      ((first + min_u32(row + 8, last)) * group.n_blocks + block) * block_bytes};
  return place;
}

/// What rows of the input become: `codes` [rows][blocks * STRIP_BLOCK_WORDS + STRIP_ROW_GAP],
/// `digits` [rows][blocks][STRIP_DIGIT_BYTES] and `scales` [rows][blocks].
DEVICE_FN void quantize_rows(PARAMS(InputParams) p, DEVICE(const f32) x, DEVICE(const f32) norm,
                             DEVICE(const f32) gate, SHARED(const f32) inverses, u32 n_rows,
                             u32 simdgroup, u32 lane, SHARED(u32) codes, SHARED(u8) digits,
                             SHARED(f32) scales) {
  const u32 n_blocks = p.n / 256;
  const u32 n_runs = p.norm_run == 0u ? 0u : p.n / p.norm_run;
  for (u32 item = simdgroup; item < n_rows * n_blocks; item += STRIP_SIMDGROUPS) {
    const u32 row = item / n_blocks;
    const u32 block = item - row * n_blocks;
    const u32 first = 256 * block + LANE_VALUES * lane;
    const LaneCodes values =
        lane_codes(p, x + u64(row) * p.n, norm, gate + u64(row) * p.gate_stride,
                   inverses + row * n_runs, 0, first, p.n);
    const i32 sum = values.sum + i32(shuffle_xor(u32(values.sum), 1));
    // Run lane / 4 of 32, of which the lane has words 2 (lane % 4) and the next.
    const u32 at = row * (n_blocks * STRIP_BLOCK_WORDS + STRIP_ROW_GAP) +
                   block * STRIP_BLOCK_WORDS + 16 * (lane / 8) + 4 * (lane % 4) +
                   2 * (lane / 4 % 2);
    codes[at] = values.packed[0];
    codes[at + 1] = values.packed[1];
    if (lane % 2 == 0u) {
      digits[item * STRIP_DIGIT_BYTES + lane / 2] = u8(u32(sum) & 63u);
      digits[item * STRIP_DIGIT_BYTES + 16 + lane / 2] = u8(u32(sum >> 6) & 255u);
    }
    if (lane == 0u) {
      scales[item] = values.scale;
    }
  }
}

/// 1 / sqrt(mean + eps) of whole rows: as many at a time as `work` holds go through it, a simdgroup
/// adds up each; of longer rows a part at a time.
DEVICE_FN void norm_rows(PARAMS(InputParams) p, DEVICE(const f32) x, u32 n_rows, SHARED(f32) work,
                         SHARED(f32) inverses, u32 thread_index) {
  const u32 simdgroup = thread_index / 32;
  const u32 at_once = max_u32(STRIP_WORK / p.n, 1u);
  for (u32 first = 0; first < n_rows; first += at_once) {
    const u32 n = min_u32(n_rows - first, at_once);
    f32 sum = 0.0f;
    for (u32 begin = 0; begin < p.n; begin += STRIP_WORK) {
      const u32 length = min_u32(p.n - begin, STRIP_WORK);
      group_barrier();  // what was there has been added up
      copy_values(x + (u64(first) * p.n + begin), n * length, work, thread_index, STRIP_THREADS);
      group_barrier();
      if (simdgroup < n) {
        sum = add_squares(work + simdgroup * length, length, thread_index % 32, sum);
      }
    }
    if (simdgroup < n) {
      sum = sum_lanes(sum);
      if (thread_index % 32 == 0u) {
        inverses[first + simdgroup] = inverse_of_run(p, sum);
      }
    }
  }
}

/// Puts what a block says into `terms`: values [16][rows], offsets [16][rows], factors [16] and
/// those of the offsets [16].
DEVICE_FN void store_product(THREAD_REF(const StripProduct) product, u32 n_rows, u32 lane,
                             SHARED(f32) terms) {
  SHARED(f32) offsets = terms + 16 * n_rows;
  SHARED(f32) factors = terms + 32 * n_rows;
  UNROLL for (u32 r = 0; r < 2; ++r) {
    const u32 row = lane / 4 + 8 * r;
    UNROLL for (u32 c = 0; c < 2; ++c) {
      const u32 column = 2 * (lane % 4) + c;
      if (column < n_rows) {
        terms[row * n_rows + column] = f32(product.values[2 * r + c]);
        offsets[row * n_rows + column] = f32(product.offsets[2 * r + c]);
      }
    }
    if (lane % 4 == 0u) {
      factors[row] = product.factors[r];
      factors[16 + row] = product.offset_factors[r];
    }
  }
}

/// One result: the blocks' terms from `terms` on, in order, with the scales of the column's codes.
DEVICE_FN f32 sum_strip(SHARED(const f32) terms, u32 n_rows, u32 n_blocks, u32 row, u32 column,
                        bool has_offset, SHARED(const f32) scales) {
  f32 sum = 0.0f;
  const u32 at = row * n_rows + column;
  for (u32 block = 0; block < n_blocks; ++block) {
    SHARED(const f32) from = terms + block * STRIP_BLOCK_FLOATS(n_rows);
    const f32 scale = scales[block];
    sum = fma_f32(from[32 * n_rows + row] * scale, from[at], sum);
    if (has_offset) {
      sum = fma_f32(from[32 * n_rows + 16 + row] * scale, from[16 * n_rows + at], sum);
    }
  }
  return sum;
}

DEVICE_FN u32 strip_block_bytes(u32 type) {
  return type == STRIP_Q4_K ? 144u : (type == STRIP_Q5_K ? 176u : 210u);
}

DEVICE_FN void load_tile(u32 type, DEVICE(const u8) weight, StripPlace place, u32 lane,
                         THREAD_REF(StripTile) tile) {
  if (type == STRIP_Q4_K) {
    q4_k_tile_load(weight, place, lane, tile);
  } else if (type == STRIP_Q5_K) {
    q5_k_tile_load(weight, place, lane, tile);
  } else {
    q6_k_tile_load(weight, place, lane, tile);
  }
}

/// Items [first, end) of the threadgroup, of which the simdgroup has its first in `tile`; leaves
/// there the one that it will need next, if there are `n_items` at least.
#define MULTIPLY_ITEMS(format)                                                                  \
  DEVICE_FN void format##_items(PARAMS(StripParams) p, THREAD_REF(const StripGroup) group,      \
                                DEVICE(const u8) weight0, DEVICE(const u8) weight1,             \
                                u64 expert_row, u32 first, u32 end, u32 n_items, u32 simdgroup, \
                                u32 lane, SHARED(const u32) codes, SHARED(const u8) digits,     \
                                SHARED(f32) work, THREAD_REF(StripTile) tile) {                 \
    const u32 block_bytes = strip_block_bytes(p.type[group.part]);                              \
    const bool has_column = lane / 4 < group.n_rows;                                            \
    const u32 row = has_column ? lane / 4 : 0u;                                                 \
    SHARED(const u32)                                                                           \
    row_codes = codes + row * (group.n_blocks * STRIP_BLOCK_WORDS + STRIP_ROW_GAP);             \
    for (u32 i = first + simdgroup; i < end; i += STRIP_SIMDGROUPS) {                           \
      const StripTile now = tile;                                                               \
      const u32 next = i + STRIP_SIMDGROUPS < end ? i + STRIP_SIMDGROUPS : end + simdgroup;     \
      if (next < n_items) {                                                                     \
        const StripItem item = strip_item(group, next);                                         \
        format##_tile_load(item.unit >= group.n_blocks ? weight1 : weight0,                     \
                           strip_place(p, group, expert_row, item, block_bytes, lane), lane,    \
                           tile);                                                               \
      }                                                                                         \
      const u32 unit = strip_item(group, i).unit;                                               \
      const u32 block = unit >= group.n_blocks ? unit - group.n_blocks : unit;                  \
      const StripCodes mine = strip_codes(                                                      \
          digits + (row * group.n_blocks + block) * STRIP_DIGIT_BYTES, has_column, lane);       \
      StripProduct product;                                                                     \
      format##_tile_multiply(now, row_codes + block * STRIP_BLOCK_WORDS, mine, product);        \
      store_product(product, group.n_rows, lane,                                                \
                    work + (i - first) * STRIP_BLOCK_FLOATS(group.n_rows));                     \
    }                                                                                           \
  }

MULTIPLY_ITEMS(q4_k)
MULTIPLY_ITEMS(q5_k)
MULTIPLY_ITEMS(q6_k)

EARLY_KERNEL(strip_projection, STRIP_THREADS, StripParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, gate),
             BUFFER(4, const f32, routing), BUFFER(5, const f32, row_gate),
             BUFFER(6, const f32, residual), BUFFER(7, const u8, weight0),
             BUFFER(8, const u8, weight1), BUFFER(9, const u8, weight2), BUFFER(10, f32, y0),
             BUFFER(11, f32, y1), BUFFER(12, f32, y2)) {
  SHARED_ARRAY(f32, work, STRIP_WORK);
  SHARED_ARRAY(u32, codes, (STRIP_MAX_BLOCKS * STRIP_BLOCK_WORDS + STRIP_COLUMNS * STRIP_ROW_GAP));
  SHARED_ARRAY(u8, digits, (STRIP_MAX_BLOCKS * STRIP_DIGIT_BYTES));
  SHARED_ARRAY(f32, scales, STRIP_MAX_BLOCKS);
  SHARED_ARRAY(f32, inverses, STRIP_MAX_RUNS);
  StripGroup group = strip_group(p, k_group.x);
  const u32 n_items = (group.end - group.begin) * group.n_units;
  const u32 type = p.type[group.part];
  DEVICE(const u8)
  first_weight = group.part == 0u ? weight0 : (group.part == 1u ? weight1 : weight2);
  const StripItem item = strip_item(group, k_simdgroup);
  DEVICE(const u8) item_weight = item.unit >= group.n_blocks ? weight1 : first_weight;
  StripTile tile;
  if (p.n_used == 0u && k_simdgroup < n_items) {
    load_tile(type, item_weight, strip_place(p, group, 0, item, strip_block_bytes(type), k_lane),
              k_lane, tile);
  }
  wait_for_kernel_before();
  const u32 first_step_row = k_group.z * p.group_rows;
  // Asked for before it is known whether there is such a row, so that two waits are one.
  u64 expert_row = 0;
  if (p.n_used != 0u) {
    expert_row = u64(u32(routing[u64(first_step_row) * 2u * p.n_used + k_group.y])) * p.expert_rows;
  }
  const u32 n_step_rows = counts[p.input.axis];
  if (first_step_row >= n_step_rows) {
    return;
  }
  group.n_rows = min_u32(n_step_rows - first_step_row, p.group_rows);
  if (p.n_used != 0u && k_simdgroup < n_items) {
    load_tile(type, item_weight,
              strip_place(p, group, expert_row, item, strip_block_bytes(type), k_lane), k_lane,
              tile);
  }
  const u32 y_row = first_step_row * max_u32(p.n_used, 1u) + k_group.y;
  const u32 x_row = p.has_x_per_slot != 0u ? y_row : first_step_row;
  DEVICE(const f32) x_rows = x + u64(x_row) * p.input.n;
  if (p.input.norm_run == p.input.n) {
    norm_rows(p.input, x_rows, group.n_rows, work, inverses, k_thread.x);
  } else if (p.input.norm_run != 0u) {
    norm_runs(p.input, x_rows, 0, group.n_rows * (p.input.n / p.input.norm_run), inverses,
              k_thread.x, STRIP_THREADS);
  }
  group_barrier();
  quantize_rows(p.input, x_rows, norm, gate + u64(x_row) * p.input.gate_stride, inverses,
                group.n_rows, k_simdgroup, k_lane, codes, digits, scales);
  group_barrier();

  const u32 strips_at_once = STRIP_WORK / (STRIP_BLOCK_FLOATS(group.n_rows) * group.n_units);
  for (u32 strip = group.begin; strip < group.end; strip += strips_at_once) {
    const u32 n_strips = min_u32(group.end - strip, strips_at_once);
    const u32 first = (strip - group.begin) * group.n_units;
    const u32 end = first + n_strips * group.n_units;
    if (type == STRIP_Q4_K) {
      q4_k_items(p, group, first_weight, weight1, expert_row, first, end, n_items, k_simdgroup,
                 k_lane, codes, digits, work, tile);
    } else if (type == STRIP_Q5_K) {
      q5_k_items(p, group, first_weight, weight1, expert_row, first, end, n_items, k_simdgroup,
                 k_lane, codes, digits, work, tile);
    } else {
      q6_k_items(p, group, first_weight, weight1, expert_row, first, end, n_items, k_simdgroup,
                 k_lane, codes, digits, work, tile);
    }
    group_barrier();
    for (u32 i = k_thread.x; i < n_strips * STRIP_ROWS * group.n_rows; i += STRIP_THREADS) {
      const u32 row = i % STRIP_ROWS;
      const u32 column = i / STRIP_ROWS % group.n_rows;
      const u32 in_round = i / (STRIP_ROWS * group.n_rows);
      const u32 output = (strip + in_round) * STRIP_ROWS + row;
      if (output >= p.n_out[group.part]) {
        continue;
      }
      const bool has_offset = type != STRIP_Q6_K;
      SHARED(const f32) row_scales = scales + column * group.n_blocks;
      SHARED(const f32)
      terms = work + in_round * group.n_units * STRIP_BLOCK_FLOATS(group.n_rows);
      f32 result =
          sum_strip(terms, group.n_rows, group.n_blocks, row, column, has_offset, row_scales);
      if (p.is_pair != 0u) {
        const f32 up = sum_strip(terms + group.n_blocks * STRIP_BLOCK_FLOATS(group.n_rows),
                                 group.n_rows, group.n_blocks, row, column, has_offset, row_scales);
        result = activate_f32(p.activation, result) * up;
      }
      if (p.has_row_gate != 0u) {
        result = result * activate_f32(p.row_activation, row_gate[first_step_row + column]);
      }
      const u64 to = u64(y_row + column) * p.n_out[group.part] + output;
      if (group.part == 0u) {
        y0[to] = p.has_residual != 0u ? result + residual[to] : result;
      } else if (group.part == 1u) {
        y1[to] = result;
      } else {
        y2[to] = result;
      }
    }
    group_barrier();  // what blocks said has been used
  }
}

}  // namespace hearth::backend::gpu
