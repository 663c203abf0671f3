// Where a matrix has few strips: the simdgroups of a threadgroup share the blocks of one, a tile of
// each at a time; what tiles say goes to shared memory, where a thread per result adds it up in
// order of k. Of floats as kernels/column_floats.h says. 21 KiB of shared memory. Bound by the
// latency of the input, then of two tiles or so.

#include "backend/gpu/kernels/column_floats.h"
#include "backend/gpu/kernels/column_group.h"
#include "backend/gpu/kernels/column_tile.h"

namespace hearth::backend::gpu {

#define SPLIT_RESULTS 2  // of a thread at most: a threadgroup has four simdgroups or more

/// Floats of what a tile says of results, in the order of sums of tiles: values, offsets, factors
/// of both for each row, scales of columns.
#define SPLIT_FACTORS(groups) (256 * (groups))
#define SPLIT_SCALES(groups) (SPLIT_FACTORS(groups) + 2 * TILE_ROWS)

#define SPLIT_UNIT(format, n, has_offsets)                                                     \
  DEVICE_FN void format##_split_unit_##n(                                                      \
      THREAD_REF(StripTile) tile, DEVICE(const u8) next, DEVICE(const u32) codes,              \
      DEVICE(const u32) digits, DEVICE(const f32) scales, THREAD_REF(const ColumnInput) input, \
      u32 scale_column, u32 block, u32 lane, SHARED(f32) unit) {                               \
    f32 scale = 0.0f;                                                                          \
    if (lane < COLUMN_GROUP * n) {                                                             \
      scale = scales[scale_column + block];                                                    \
    }                                                                                          \
    ColumnTerms terms;                                                                         \
    format##_column_terms_##n(tile, next, codes, digits, input, block, lane, terms);           \
    UNROLL for (u32 i = 0; i < 4 * n; ++i) {                                                   \
      unit[32 * i + lane] = f32(terms.values[i]);                                              \
      if (has_offsets) {                                                                       \
        unit[32 * (4 * n + i) + lane] = f32(terms.offsets[i]);                                 \
      }                                                                                        \
    }                                                                                          \
    const u32 r = lane % 4;                                                                    \
    if (r < 2u) {                                                                              \
      SHARED(f32) factors = unit + (SPLIT_FACTORS(n) + lane / 4 + 8 * r);                      \
      factors[0] = r == 0u ? terms.factors[0] : terms.factors[1];                              \
      if (has_offsets) {                                                                       \
        factors[TILE_ROWS] = r == 0u ? terms.offset_factors[0] : terms.offset_factors[1];      \
      }                                                                                        \
    }                                                                                          \
    if (lane < COLUMN_GROUP * n) {                                                             \
      unit[SPLIT_SCALES(n) + lane] = scale;                                                    \
    }                                                                                          \
  }

SPLIT_UNIT(q4_k, 1, true)
SPLIT_UNIT(q4_k, 2, true)
SPLIT_UNIT(q5_k, 1, true)
SPLIT_UNIT(q5_k, 2, true)
SPLIT_UNIT(q6_k, 1, false)
SPLIT_UNIT(q6_k, 2, false)

DEVICE_FN void split_unit(u32 type, u32 n_groups, THREAD_REF(StripTile) tile, DEVICE(const u8) next,
                          DEVICE(const u32) codes, DEVICE(const u32) digits,
                          DEVICE(const f32) scales, THREAD_REF(const ColumnInput) input,
                          u32 scale_column, u32 block, u32 lane, SHARED(f32) unit) {
  const bool is_one = n_groups == 1u;
  if (type == STRIP_Q4_K && is_one) {
    q4_k_split_unit_1(tile, next, codes, digits, scales, input, scale_column, block, lane, unit);
  } else if (type == STRIP_Q4_K) {
    q4_k_split_unit_2(tile, next, codes, digits, scales, input, scale_column, block, lane, unit);
  } else if (type == STRIP_Q5_K && is_one) {
    q5_k_split_unit_1(tile, next, codes, digits, scales, input, scale_column, block, lane, unit);
  } else if (type == STRIP_Q5_K) {
    q5_k_split_unit_2(tile, next, codes, digits, scales, input, scale_column, block, lane, unit);
  } else if (is_one) {
    q6_k_split_unit_1(tile, next, codes, digits, scales, input, scale_column, block, lane, unit);
  } else {
    q6_k_split_unit_2(tile, next, codes, digits, scales, input, scale_column, block, lane, unit);
  }
}

/// Place i of the lane among what tiles say of results.
struct SplitPlace {
  u32 row;     // of the strip
  u32 column;  // of the chunk
};

DEVICE_FN SplitPlace split_place(u32 i, u32 lane) {
  const SplitPlace place = {lane / 4 + i % 4 / 2 * 8, i / 4 * COLUMN_GROUP + lane % 4 * 2 + i % 2};
  return place;
}

/// Goes on with the chain of a result over a unit.
DEVICE_FN f32 add_split_unit(SHARED(const f32) unit, u32 n_groups, bool has_offsets, u32 i,
                             u32 lane, f32 result) {
  const SplitPlace place = split_place(i, lane);
  const f32 scale = unit[SPLIT_SCALES(n_groups) + place.column];
  SHARED(const f32) factors = unit + (SPLIT_FACTORS(n_groups) + place.row);
  f32 sum = fma_f32(factors[0] * scale, unit[32 * i + lane], result);
  if (has_offsets) {
    sum = fma_f32(factors[TILE_ROWS] * scale, unit[32 * (4 * n_groups + i) + lane], sum);
  }
  return sum;
}

EARLY_KERNEL(column_split_k, COLUMN_MAX_THREADS, ColumnParams, BUFFER(0, const u32, counts),
             BUFFER(1, const u32, codes), BUFFER(2, const u32, digits),
             BUFFER(3, const f32, scales), BUFFER(4, const f32, float_x),
             BUFFER(5, const f32, row_gate), BUFFER(6, const f32, residual),
             BUFFER(7, const f32, slots), BUFFER(8, const f32, routing),
             BUFFER(9, const u8, weight0), BUFFER(10, const u8, weight1),
             BUFFER(11, const u8, weight2), BUFFER(12, const u8, weight3), BUFFER(13, f32, y0),
             BUFFER(14, f32, y1), BUFFER(15, f32, y2), BUFFER(16, f32, y3)) {
  SHARED_ARRAY(f32, work, COLUMN_WORK);
  const ColumnGroup group = column_group(p, k_group.x);
  const u32 part = group.part;
  const u32 type = p.type[part];
  const u32 n_out = p.n_out[part];
  const u32 n_rows = counts[p.axis];
  DEVICE(const u8) weight = strip_weight(part, weight0, weight1, weight2, weight3);
  DEVICE(f32) y = strip_output(part, y0, y1, y2, y3);
  if (type == STRIP_F32) {
    const FloatPlace place = float_place(p, group.first, k_group_size.x);
    FloatLoads loads[FLOAT_AHEAD];
    const bool is_first = k_group.y == 0u;
    if (is_first) {
      begin_float_columns(p, floats(weight), n_out, place, k_thread.x, k_group_size.x, loads);
    }
    wait_for_kernel_before();
    if (is_first && place.column < n_rows) {
      const f32 result = multiply_float_columns(p, floats(weight), n_out, float_x, n_rows, place,
                                                k_thread.x, k_group_size.x, work, loads);
      store_float_column(p, part, result, n_rows, place, k_thread.x, row_gate, residual, slots,
                         routing, y);
    }
    return;
  }
  const u32 n_simdgroups = k_group_size.x / 32;
  const u32 n_blocks = p.n / 256;
  const u32 n_units = p.is_pair != 0u ? 2 * n_blocks : n_blocks;
  const u32 tile_bytes = strip_tile_bytes(type);
  const u64 strip_at = u64(group.first) * n_blocks * tile_bytes;
  DEVICE(const u8) first = weight + strip_at;
  DEVICE(const u8) second = weight1 + strip_at;
  u32 unit = k_simdgroup;
  StripTile tile;
  if (unit < n_units) {
    tile_load(type,
              unit < n_blocks ? first + unit * tile_bytes : second + (unit - n_blocks) * tile_bytes,
              k_lane, tile);
  }
  wait_for_kernel_before();

  const u32 chunk_columns = p.chunk_groups * COLUMN_GROUP;
  const u32 first_row = k_group.y * chunk_columns;
  if (first_row >= n_rows) {
    return;
  }
  const u32 n_columns = min_u32(n_rows - first_row, chunk_columns);
  const u32 n_groups = (n_columns + COLUMN_GROUP - 1u) / COLUMN_GROUP;
  ColumnInput input;
  UNROLL for (u32 i = 0; i < COLUMN_MAX_GROUPS; ++i) {
    const u32 column = COLUMN_GROUP * i + k_lane / 4;
    input.own[i] = (first_row + min_u32(column, n_columns - 1u)) * n_blocks;
  }
  const u32 scale_column = (first_row + min_u32(k_lane, n_columns - 1u)) * n_blocks;
  f32 results[SPLIT_RESULTS];
  f32 gates[SPLIT_RESULTS];
  ColumnEnd ends[SPLIT_RESULTS];
  UNROLL for (u32 k = 0; k < SPLIT_RESULTS; ++k) {
    const u32 i = k_simdgroup + k * n_simdgroups;
    const SplitPlace place = split_place(i, k_lane);
    const u32 output = group.first * TILE_ROWS + place.row;
    const u32 row = first_row + place.column;
    results[k] = 0.0f;
    gates[k] = 0.0f;
    if (place.column < n_columns && output < n_out) {
      ends[k] = column_end(p, part, row, output, u64(row) * n_out + output, row_gate, residual,
                           slots, routing);
    }
  }
  const u32 unit_words = SPLIT_UNIT_WORDS(p.chunk_groups);
  for (u32 begin = 0; begin < n_units; begin += p.round_units) {
    const u32 end = min_u32(begin + p.round_units, n_units);
    for (; unit < end; unit += n_simdgroups) {
      const u32 then = min_u32(unit + n_simdgroups, n_units - 1u);
      split_unit(
          type, n_groups, tile,
          then < n_blocks ? first + then * tile_bytes : second + (then - n_blocks) * tile_bytes,
          codes, digits, scales, input, scale_column, unit < n_blocks ? unit : unit - n_blocks,
          k_lane, work + (unit - begin) * unit_words);
    }
    group_barrier();
    UNROLL for (u32 k = 0; k < SPLIT_RESULTS; ++k) {
      const u32 i = k_simdgroup + k * n_simdgroups;
      for (u32 u = begin; i < 4 * n_groups && u < end; ++u) {
        if (u == n_blocks) {  // those of the other matrix follow
          gates[k] = results[k];
          results[k] = 0.0f;
        }
        results[k] = add_split_unit(work + (u - begin) * unit_words, n_groups, type != STRIP_Q6_K,
                                    i, k_lane, results[k]);
      }
    }
    if (end < n_units) {
      group_barrier();  // what tiles said has been used
    }
  }
  UNROLL for (u32 k = 0; k < SPLIT_RESULTS; ++k) {
    const u32 i = k_simdgroup + k * n_simdgroups;
    const SplitPlace place = split_place(i, k_lane);
    const u32 output = group.first * TILE_ROWS + place.row;
    const u32 row = first_row + place.column;
    if (place.column < n_columns && output < n_out) {
      const f32 product =
          p.is_pair != 0u ? activate_f32(p.activation, gates[k]) * results[k] : results[k];
      y[u64(row) * n_out + output] = column_result(p, part, product, ends[k]);
    }
  }
}

}  // namespace hearth::backend::gpu
