// For two to four rows of the step. A chain, 16 results of a matrix for each row, has one simdgroup
// or several, which share its tiles: the first adds up its own in registers, then it and the second
// what the others have put aside in shared memory. Parts of a simdgroup's next tile are asked for
// as those of a tile have been used (kernels/few_tile.h). Of floats, chunks of eight rows of the
// matrix and of four of the step pass through shared memory, where a lane has each chain of a
// result. 32 KiB of shared memory. Bound by the latency of the input for small matrices,
// by memory for large ones.

#include "backend/gpu/kernels/strips.h"

#include "backend/gpu/kernels/few_tile.h"
#include "backend/gpu/kernels/strip_group.h"
#include "backend/gpu/kernels/strip_parts.h"
#include "backend/gpu/kernels/strip_sums.h"

namespace hearth::backend::gpu {

/// What load_row_lot brought becomes `codes` [rows][strip_row_words], `digits`
/// [rows][blocks][STRIP_DIGIT_BYTES] and `scales` [blocks][STRIP_FEW_ROWS].
DEVICE_FN void quantize_row_lot(u32 n_blocks, u32 n_items, u32 simdgroup, u32 lane,
                                THREAD(const f32x4) values, SHARED(u32) codes, SHARED(u8) digits,
                                SHARED(f32) scales) {
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    const u32 item = simdgroup + i * STRIP_SIMDGROUPS;
    if (item < n_items) {
      const u32 row = item / n_blocks;
      const u32 block = item - row * n_blocks;
      quantize_block(values[2 * i], values[2 * i + 1], lane,
                     codes + (row * strip_row_words(n_blocks) + block * STRIP_BLOCK_WORDS),
                     digits + item * STRIP_DIGIT_BYTES, scales + (STRIP_FEW_ROWS * block + row));
    }
  }
}

/// How the simdgroups of a threadgroup share its chains; of a pair, gate and up are two.
struct ChainShare {
  u32 n_chains;
  u32 shift;      // a chain has 1 << shift simdgroups
  u32 n_at_once;  // chains
  u32 n_tiles;    // of a chain that a simdgroup has; the last may have less
};

DEVICE_FN ChainShare chain_share(PARAMS(StripParams) p, THREAD_REF(const StripGroup) group) {
  ChainShare share;
  share.n_chains = (group.end - group.begin) * (p.is_pair != 0u ? 2u : 1u);
  share.shift = p.chain_shift[group.part];
  share.n_at_once = STRIP_SIMDGROUPS >> share.shift;
  share.n_tiles = CHAIN_TILES(group.n_blocks, share.shift);
  return share;
}

/// The tiles of a chain that a simdgroup has.
struct ChainPart {
  u32 chain;
  u32 begin;  // blocks [begin, end), none where there is no chain
  u32 end;
};

DEVICE_FN ChainPart chain_part(ChainShare share, u32 n_blocks, u32 first_chain, u32 simdgroup) {
  const u32 in_round = simdgroup >> share.shift;
  const u32 part = simdgroup - (in_round << share.shift);
  ChainPart result = {first_chain + in_round, part * share.n_tiles, 0};
  if (in_round < share.n_at_once && result.chain < share.n_chains) {
    result.end = min_u32(result.begin + share.n_tiles, n_blocks);
  }
  return result;
}

/// Where a tile of a chain lies.
DEVICE_FN DEVICE(const u8)
    chain_tile(THREAD_REF(const StripGroup) group, StripMatrix matrix, DEVICE(const u8) first,
               DEVICE(const u8) second, bool is_pair, u32 chain, u32 block) {
  const u32 strip = group.begin + (is_pair ? chain / 2 : chain);
  return (is_pair && chain % 2 != 0u ? second : first) +
         (strip * matrix.strip_bytes + block * matrix.tile_bytes);
}

/// The scales of the lane's two rows.
DEVICE_FN void lane_scales(SHARED(const f32) scales, u32 block, u32 lane, u32 n_rows,
                           THREAD(f32) two) {
  UNROLL for (u32 c = 0; c < 2; ++c) {
    two[c] = scales[STRIP_FEW_ROWS * block + min_u32(2 * (lane % 2) + c, n_rows - 1u)];
  }
}

/// Where the lane's two results of a strip go (kernels/few_tile.h), in y.
struct ResultPlaces {
  u32 rows[2];  // of the step
  u64 to[2];
  bool is_stored[2];
};

DEVICE_FN ResultPlaces result_places(PARAMS(StripParams) p, u32 part, u32 strip, u32 first_step_row,
                                     u32 n_rows, u32 lane, bool has_first, bool has_second) {
  const u32 output = strip * STRIP_ROWS + lane / 4 + 8 * (lane % 4 / 2);
  ResultPlaces places;
  UNROLL for (u32 c = 0; c < 2; ++c) {
    const u32 row = 2 * (lane % 2) + c;
    places.rows[c] = first_step_row + row;
    places.to[c] = u64(places.rows[c]) * p.n_out[part] + output;
    places.is_stored[c] =
        (c == 0u ? has_first : has_second) && row < n_rows && output < p.n_out[part];
  }
  return places;
}

struct StripEnds {
  StripEnd of[2];
};

DEVICE_FN StripEnds strip_ends(PARAMS(StripParams) p, u32 part,
                               THREAD_REF(const ResultPlaces) places, DEVICE(const f32) row_gate,
                               DEVICE(const f32) residual) {
  StripEnds ends;
  UNROLL for (u32 c = 0; c < 2; ++c) {
    const StripEnd none = {0.0f, 0.0f};
    ends.of[c] = none;
    if (places.is_stored[c]) {
      ends.of[c] = strip_end(p, part, places.rows[c], places.to[c], row_gate, residual);
    }
  }
  return ends;
}

/// The simdgroup's tiles, whose first is in `tile`, go into `results` if they are the first of the
/// chain, otherwise to `aside`; `tile` becomes the one at `behind`.
#define FEW_TILES(format, has_offset)                                                              \
  DEVICE_FN void format##_few_tiles(                                                               \
      ChainPart part, DEVICE(const u8) from, u32 tile_bytes, bool has_behind,                      \
      DEVICE(const u8) behind, SHARED(const u32) codes, SHARED(const u8) digits,                   \
      SHARED(const f32) scales, u32 n_rows, u32 lane, SHARED(u32) aside,                           \
      THREAD_REF(StripTile) tile, THREAD(f32) results) {                                           \
    KEEP_LOOP for (u32 block = part.begin; block < part.end; ++block) {                            \
      const bool is_last = block + 1u == part.end;                                                 \
      FewProduct product;                                                                          \
      format##_few_multiply(tile, !is_last || has_behind,                                          \
                            is_last ? behind : from + (block + 1u - part.begin) * tile_bytes,      \
                            codes + block * STRIP_BLOCK_WORDS, digits + block * STRIP_DIGIT_BYTES, \
                            lane, product);                                                        \
      if (part.begin == 0u) {                                                                      \
        f32 two[2];                                                                                \
        lane_scales(scales, block, lane, n_rows, two);                                             \
        add_few_product(product, has_offset, two, results);                                        \
      } else {                                                                                     \
        store_few_product(product, lane, aside + (block - part.begin) * FEW_TERMS);                \
      }                                                                                            \
    }                                                                                              \
  }

FEW_TILES(q4_k, true)
FEW_TILES(q5_k, true)
FEW_TILES(q6_k, false)

EARLY_KERNEL(strip_projection, STRIP_THREADS, StripParams, BUFFER(0, const u32, counts),
             BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, row_gate),
             BUFFER(4, const f32, residual), BUFFER(5, const u8, weight0),
             BUFFER(6, const u8, weight1), BUFFER(7, const u8, weight2),
             BUFFER(8, const u8, weight3), BUFFER(9, f32, y0), BUFFER(10, f32, y1),
             BUFFER(11, f32, y2), BUFFER(12, f32, y3)) {
  SHARED_ARRAY(f32, pool, STRIP_POOL);  // codes and what is put aside, or floats
  SHARED_ARRAY(u8, digits, (STRIP_LOT_BLOCKS * STRIP_DIGIT_BYTES));
  SHARED_ARRAY(f32, scales, (STRIP_MAX_BLOCKS * STRIP_FEW_ROWS));
  SHARED_ARRAY(f32, inverses, STRIP_MAX_ROWS);
  const StripGroup group = strip_group(p, k_group.x);
  const u32 type = p.type[group.part];
  const u32 n_out = p.n_out[group.part];
  const u32 first_step_row = k_group.y * p.group_rows;
  const u32 n_step_rows = counts[p.axis];
  DEVICE(const u8) weight = strip_weight(group.part, weight0, weight1, weight2, weight3);
  DEVICE(f32) y = strip_output(group.part, y0, y1, y2, y3);
  if (p.has_norm != 0u && 32 * k_thread.x < p.n) {
    prefetch(norm + 32 * k_thread.x);
  }
  if (type == STRIP_F32) {
    DEVICE(const f32) matrix = floats(weight);
    const u32 first_row = group.begin * STRIP_FLOAT_ROWS;
    f32x4 loaded[FLOAT_LOADS];
    load_float_rows(p, matrix, first_row, n_out, 0, k_thread.x, loaded);
    wait_for_kernel_before();
    multiply_float_rows(p, group.part, matrix, first_row, first_step_row,
                        min_u32(n_step_rows, first_step_row + p.group_rows), x, norm, row_gate,
                        residual, pool, inverses, k_thread.x, loaded, y);
    return;
  }

  const bool is_pair = p.is_pair != 0u;
  const StripMatrix matrix = strip_matrix(type, group.n_blocks);
  const u32 code_words = p.group_rows * strip_row_words(group.n_blocks);
  const ChainShare share = chain_share(p, group);
  ChainPart part = chain_part(share, group.n_blocks, 0, k_simdgroup);
  DEVICE(const u8)
  from = chain_tile(group, matrix, weight, weight1, is_pair, part.chain, part.begin);
  StripTile tile;
  if (part.begin < part.end) {
    tile_load(type, from, k_lane, tile);
  }
  wait_for_kernel_before();
  if (first_step_row >= n_step_rows) {
    return;
  }
  const u32 n_rows = min_u32(n_step_rows - first_step_row, p.group_rows);
  DEVICE(const f32) x_rows = x + u64(first_step_row) * p.n;
  const u32 n_items = n_rows * group.n_blocks;
  f32x4 values[2 * ROW_ITEMS];
  load_row_lot(x_rows, n_items, k_simdgroup, k_lane, values);
  if (p.has_norm != 0u) {
    norm_row_lot(p, x_rows, n_rows, inverses, k_simdgroup, k_lane);
    group_barrier();
    apply_norm(norm, inverses, group.n_blocks, n_items, k_simdgroup, k_lane, values);
  }
  SHARED(u32) codes = as_words(pool);
  quantize_row_lot(group.n_blocks, n_items, k_simdgroup, k_lane, values, codes, digits, scales);
  group_barrier();

  const u32 column = few_column(k_lane, n_rows);
  SHARED(const u32) own_codes = codes + column * strip_row_words(group.n_blocks);
  SHARED(const u8) own_digits = digits + column * group.n_blocks * STRIP_DIGIT_BYTES;
  SHARED(f32) passed = pool + code_words;  // from simdgroup to simdgroup
  SHARED(f32)
  ups = passed + 32 * share.n_at_once * (share.shift != 0u ? 1u : 0u);  // of a pair
  const u32 n_aside = group.n_blocks - share.n_tiles;
  SHARED(u32) aside = codes + (code_words + FEW_PASSED_WORDS);
  const bool has_offset = type != STRIP_Q6_K;
  for (u32 first = 0; first < share.n_chains; first += share.n_at_once) {
    const u32 in_round = part.chain - first;
    const bool has_tiles = part.begin < part.end;
    // Of lanes' two results the first simdgroup of a chain has one or both, the next the other.
    const bool has_first = has_tiles && part.begin == 0u;
    const bool has_second = has_tiles && part.begin == (n_aside != 0u ? share.n_tiles : 0u);
    const bool is_up = is_pair && part.chain % 2 != 0u;
    const u32 strip = group.begin + (is_pair ? part.chain / 2 : part.chain);
    const ResultPlaces places = result_places(p, group.part, strip, first_step_row, n_rows, k_lane,
                                              has_first && !is_up, has_second && !is_up);
    const StripEnds ending = strip_ends(p, group.part, places, row_gate, residual);
    const ChainPart next = chain_part(share, group.n_blocks, first + share.n_at_once, k_simdgroup);
    DEVICE(const u8)
    behind = chain_tile(group, matrix, weight, weight1, is_pair, next.chain, next.begin);
    const bool has_behind = next.begin < next.end;
    SHARED(u32) chain_aside = aside + in_round * n_aside * FEW_TERMS;
    SHARED(u32)
    own_aside = chain_aside + (part.begin - min_u32(share.n_tiles, part.begin)) * FEW_TERMS;
    f32 results[2] = {0.0f, 0.0f};
    if (has_tiles) {
      if (type == STRIP_Q4_K) {
        q4_k_few_tiles(part, from, matrix.tile_bytes, has_behind, behind, own_codes, own_digits,
                       scales, n_rows, k_lane, own_aside, tile, results);
      } else if (type == STRIP_Q5_K) {
        q5_k_few_tiles(part, from, matrix.tile_bytes, has_behind, behind, own_codes, own_digits,
                       scales, n_rows, k_lane, own_aside, tile, results);
      } else {
        q6_k_few_tiles(part, from, matrix.tile_bytes, has_behind, behind, own_codes, own_digits,
                       scales, n_rows, k_lane, own_aside, tile, results);
      }
    }
    if (n_aside != 0u) {
      if (has_first) {
        passed[32 * in_round + k_lane] = results[1];
      }
      group_barrier();
      if (has_first || has_second) {
        const u32 c = has_first ? 0u : 1u;
        const u32 row = min_u32(2 * (k_lane % 2) + c, n_rows - 1u);
        const f32 result = add_aside(chain_aside, n_aside, has_offset,
                                     scales + (STRIP_FEW_ROWS * share.n_tiles + row), k_lane, c,
                                     has_first ? results[0] : passed[32 * in_round + k_lane]);
        results[0] = result;
        results[1] = result;
      }
    }
    if (is_pair) {
      SHARED(f32) two = ups + (in_round / 2 * 64 + 2 * k_lane);
      if (is_up && has_first) {
        two[0] = results[0];
      }
      if (is_up && has_second) {
        two[1] = results[1];
      }
      group_barrier();
      if (!is_up && (has_first || has_second)) {
        UNROLL for (u32 c = 0; c < 2; ++c) {
          results[c] = activate_f32(p.activation, results[c]) * two[c];
        }
      }
    }
    UNROLL for (u32 c = 0; c < 2; ++c) {
      if (places.is_stored[c]) {
        y[places.to[c]] = strip_result(p, group.part, results[c], ending.of[c]);
      }
    }
    if (n_aside != 0u || is_pair) {
      group_barrier();  // what was put aside has been used
    }
    part = next;
    from = behind;
  }
}

}  // namespace hearth::backend::gpu
