#pragma once
/// Products of int8 codes with weights in integer form (quant/integer_form.h).
///
/// A threadgroup of four simdgroups multiplies eight rows of the matrix, two for each simdgroup,
/// with up to four rows of the step. A simdgroup goes along k in passes of PASS_PIECES pieces, one
/// a lane. Dot products are exact, so lanes that share a unit may add up in any order; the floats
/// of each unit then go through shared memory to the lane that adds the units of its result in
/// order of k. Bound by memory for few rows, by unpacking and dot products for many.

#include "backend/gpu/kernels/piece.h"
#include "backend/gpu/kernels/product_place.h"

namespace hearth::backend::gpu {

#define PRODUCT_SIMDGROUPS (PRODUCT_THREADS / 32)
#define PRODUCT_OUTPUTS 2                                     // of a simdgroup
#define PRODUCT_PAIRS (PRODUCT_OUTPUTS * PRODUCT_GROUP_ROWS)  // of an output and a row of the step

/// What a unit adds to a result: scale * value, and offset * offset_value with an offset term.
/// Terms of a simdgroup are [kind][pair][TERM_STRIDE], of kinds in this order; the stride is odd,
/// so that lanes of different pairs meet different banks.
#define TERM_STRIDE(unit_pieces) (PASS_PIECES / (unit_pieces) + 1)
#define N_TERMS(unit_pieces, has_offset) \
  (((has_offset) ? 4 : 2) * PRODUCT_PAIRS * TERM_STRIDE(unit_pieces))

/// Dot products of pieces of two outputs with codes of a row of the step.
struct PieceSums {
  i32 values[PRODUCT_OUTPUTS];
  i32 offsets[PRODUCT_OUTPUTS];
};

/// `codes` and `sums` are those that the pieces multiply.
DEVICE_FN PieceSums multiply_pieces(THREAD(const Piece) pieces, DEVICE(const u32) codes,
                                    DEVICE(const i16) sums, u32 piece_weights, bool has_offset) {
  PieceSums result;
  u32 x[8];
  UNROLL for (u32 i = 0; i < piece_weights / 4; i += 4) {
    const u32x4 four = load4(codes + i);
    x[i] = four.x;
    x[i + 1] = four.y;
    x[i + 2] = four.z;
    x[i + 3] = four.w;
  }
  UNROLL for (u32 r = 0; r < PRODUCT_OUTPUTS; ++r) {
    i32 value = 0;
    i32 offset = 0;
    UNROLL for (u32 group = 0; group < piece_weights / 16; ++group) {
      i32 dot = 0;
      UNROLL for (u32 i = 4 * group; i < 4 * group + 4; ++i) {
        dot = dot4_i8(pieces[r].codes[i], x[i], dot);
      }
      value += pieces[r].sub_scales[group] * dot;
      if (has_offset) {
        offset += pieces[r].sub_offsets[group] * i32(sums[group]);
      }
    }
    result.values[r] = value;
    result.offsets[r] = offset;
  }
  return result;
}

/// The sum over the lanes of a unit, for each of them.
DEVICE_FN i32 sum_unit(i32 value, u32 unit_pieces) {
  u32 sum = u32(value);
  for (u32 distance = 1; distance < unit_pieces; distance *= 2) {
    sum += shuffle_xor(sum, distance);
  }
  return i32(sum);
}

/// Writes the terms of a unit for both outputs and one row of the step, whose activation scale it
/// has.
DEVICE_FN void store_terms(SHARED(f32) terms, THREAD(const Piece) pieces,
                           THREAD_REF(const PieceSums) sums, f32 x_scale, u32 row, u32 unit,
                           u32 stride, bool has_offset) {
  UNROLL for (u32 r = 0; r < PRODUCT_OUTPUTS; ++r) {
    SHARED(f32) term = terms + (row * PRODUCT_OUTPUTS + r) * stride + unit;
    term[0] = pieces[r].scale * x_scale;
    term[PRODUCT_PAIRS * stride] = f32(sums.values[r]);
    if (has_offset) {
      term[2 * PRODUCT_PAIRS * stride] = pieces[r].offset * x_scale;
      term[3 * PRODUCT_PAIRS * stride] = f32(sums.offsets[r]);
    }
  }
}

/// Adds the terms of n units to the sum of one pair, in order.
DEVICE_FN f32 add_terms(SHARED(const f32) terms, u32 pair, u32 n, u32 stride, bool has_offset,
                        f32 sum) {
  SHARED(const f32) term = terms + pair * stride;
  for (u32 unit = 0; unit < n; ++unit) {
    sum = fma_f32(term[unit], term[PRODUCT_PAIRS * stride + unit], sum);
    if (has_offset) {
      sum = fma_f32(term[2 * PRODUCT_PAIRS * stride + unit],
                    term[3 * PRODUCT_PAIRS * stride + unit], sum);
    }
  }
  return sum;
}

/// The rows of the matrix that a simdgroup multiplies; the last one twice, if there is no other.
struct MatrixRows {
  u64 rows[PRODUCT_OUTPUTS];
  u32 bytes;     // of a row
  u32 is_tiled;  // they lie in tiles
};

DEVICE_FN MatrixRows matrix_rows(u64 first, u32 output, u32 n_out, u32 row_bytes, u32 is_tiled) {
  MatrixRows result;
  UNROLL for (u32 r = 0; r < PRODUCT_OUTPUTS; ++r) {
    result.rows[r] = first + min_u32(output + r, n_out - 1u);
  }
  result.bytes = row_bytes;
  result.is_tiled = is_tiled;
  return result;
}

/// What a pass takes of row r, from byte `at` of the row on. What is gathered from tiles begins
/// with the range.
DEVICE_FN CopyRange pass_range(THREAD_REF(const MatrixRows) rows, u32 r, u32 at, u32 pass_bytes) {
  CopyRange range =
      copy_range(rows.rows[r] * rows.bytes, rows.bytes, at, min_u32(rows.bytes - at, pass_bytes));
  range.begin = rows.is_tiled != 0u ? 0u : range.begin;
  return range;
}

DEVICE_FN void load_pass(DEVICE(const u8) weight, THREAD_REF(const MatrixRows) rows, u32 at,
                         u32 pass_bytes, u32 lane, THREAD(u32x4) loaded) {
  if (rows.is_tiled != 0u) {
    return;  // store_pass gathers
  }
  UNROLL for (u32 r = 0; r < PRODUCT_OUTPUTS; ++r) {
    const CopyRange range = pass_range(rows, r, at, pass_bytes);
    load_copy(weight, range, lane, loaded + r * COPY_LOADS(pass_bytes), COPY_LOADS(pass_bytes));
  }
}

DEVICE_FN void store_pass(DEVICE(const u8) weight, SHARED(u32) copy,
                          THREAD_REF(const MatrixRows) rows, u32 at, u32 block_bytes,
                          u32 pass_bytes, u32 lane, THREAD(const u32x4) loaded) {
  UNROLL for (u32 r = 0; r < PRODUCT_OUTPUTS; ++r) {
    const CopyRange range = pass_range(rows, r, at, pass_bytes);
    if (rows.is_tiled != 0u) {
      gather_blocks(block_bytes, weight, rows.rows[r], rows.bytes / block_bytes, at / block_bytes,
                    min_u32(rows.bytes - at, pass_bytes), lane, copy + r * COPY_WORDS(pass_bytes));
      continue;
    }
    store_copy(copy + r * COPY_WORDS(pass_bytes), range.end, lane,
               loaded + r * COPY_LOADS(pass_bytes), COPY_LOADS(pass_bytes));
  }
}

/// The kernel `name` for a format (kernels/piece.h). The bytes of the next pass are loaded while a
/// pass is multiplied.
#define PRODUCT_KERNEL(name, ...) INTEGER_PRODUCT(name, __VA_ARGS__)
#define INTEGER_PRODUCT(name, format, block_bytes, block_pieces, piece_weights, unit_pieces,      \
                        activation_block, has_offset)                                             \
  KERNEL(name, PRODUCT_THREADS, ProductParams, BUFFER(0, const u32, counts),                      \
         BUFFER(1, const u8, weight), BUFFER(2, const u32, codes), BUFFER(3, const f32, scales),  \
         BUFFER(4, const i16, sums), BUFFER(5, const f32, routing), BUFFER(6, const f32, bias),   \
         BUFFER(7, const f32, gate), BUFFER(8, const f32, residual), BUFFER(9, f32, y)) {         \
    SHARED_ARRAY(u32, copies,                                                                     \
                 COPY_WORDS(PASS_BYTES(block_bytes, block_pieces)) * PRODUCT_GROUP_OUTPUTS);      \
    SHARED_ARRAY(f32, group_terms, N_TERMS(unit_pieces, has_offset) * PRODUCT_SIMDGROUPS);        \
    const ProductPlace place = product_place(p, counts, routing, k_group.x, k_group.z);           \
    const u32 output = k_group.y * PRODUCT_GROUP_OUTPUTS + k_simdgroup * PRODUCT_OUTPUTS;         \
    if (place.n_rows == 0u || output >= p.n_out) {                                                \
      return;                                                                                     \
    }                                                                                             \
    const u32 pass_bytes = PASS_BYTES(block_bytes, block_pieces);                                 \
    SHARED(u32) copy = copies + k_simdgroup * PRODUCT_OUTPUTS * COPY_WORDS(pass_bytes);           \
    SHARED(f32) terms = group_terms + k_simdgroup * N_TERMS(unit_pieces, has_offset);             \
    const u32 n_pieces = p.n_in / piece_weights;                                                  \
    const MatrixRows rows =                                                                       \
        matrix_rows(place.first_weight, output, p.n_out, n_pieces / block_pieces * block_bytes,   \
                    HAS_TILES(block_bytes) ? p.is_tiled : 0u);                                    \
    u32x4 loaded[PRODUCT_OUTPUTS * COPY_LOADS(pass_bytes)];                                       \
    load_pass(weight, rows, 0, pass_bytes, k_lane, loaded);                                       \
    f32 sum = 0.0f; /* of the pair that is the lane's */                                          \
    u32 at = 0;     /* byte of a row */                                                           \
    for (u32 first = 0; first < n_pieces; first += PASS_PIECES) {                                 \
      const u32 n = min_u32(n_pieces - first, PASS_PIECES);                                       \
      const u32 mine = min_u32(k_lane, n - 1u); /* lanes without a piece repeat the last */       \
      store_pass(weight, copy, rows, at, block_bytes, pass_bytes, k_lane, loaded);                \
      simdgroup_barrier();                                                                        \
      if (first + PASS_PIECES < n_pieces) {                                                       \
        load_pass(weight, rows, at + pass_bytes, pass_bytes, k_lane, loaded);                     \
      }                                                                                           \
      Piece pieces[PRODUCT_OUTPUTS];                                                              \
      UNROLL for (u32 r = 0; r < PRODUCT_OUTPUTS; ++r) {                                          \
        const CopyRange range = pass_range(rows, r, at, pass_bytes);                              \
        format##_piece(copy + r * COPY_WORDS(pass_bytes),                                         \
                       range.begin + mine / block_pieces * block_bytes, mine % block_pieces,      \
                       pieces[r]);                                                                \
      }                                                                                           \
      at += pass_bytes;                                                                           \
      for (u32 row = 0; row < place.n_rows; ++row) {                                              \
        const u64 x = u64(place.x_row + row) * p.n_in + (first + mine) * piece_weights;           \
        const f32 x_scale = scales[x / activation_block];                                         \
        PieceSums dots =                                                                          \
            multiply_pieces(pieces, codes + x / 4, sums + x / 16, piece_weights, has_offset);     \
        UNROLL for (u32 r = 0; r < PRODUCT_OUTPUTS; ++r) {                                        \
          dots.values[r] = sum_unit(dots.values[r], unit_pieces);                                 \
          dots.offsets[r] = has_offset ? sum_unit(dots.offsets[r], unit_pieces) : 0;              \
        }                                                                                         \
        if (k_lane < n && k_lane % unit_pieces == 0u) {                                           \
          store_terms(terms, pieces, dots, x_scale, row, k_lane / unit_pieces,                    \
                      TERM_STRIDE(unit_pieces), has_offset);                                      \
        }                                                                                         \
      }                                                                                           \
      simdgroup_barrier();                                                                        \
      if (k_lane < place.n_rows * PRODUCT_OUTPUTS) {                                              \
        sum =                                                                                     \
            add_terms(terms, k_lane, n / unit_pieces, TERM_STRIDE(unit_pieces), has_offset, sum); \
      }                                                                                           \
    }                                                                                             \
    const u32 row = k_lane / PRODUCT_OUTPUTS;                                                     \
    const u32 mine = output + k_lane % PRODUCT_OUTPUTS;                                           \
    if (row < place.n_rows && mine < p.n_out) {                                                   \
      const u64 to = u64(place.y_row + row) * p.n_out + mine;                                     \
      y[to] = product_result(p, sum, to, mine, place.step_row + row, bias, gate, residual);       \
    }                                                                                             \
  }

}  // namespace hearth::backend::gpu
