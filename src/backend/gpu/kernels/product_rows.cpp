// Products of prompts with matrices of floats. A threadgroup has 64 rows of the step and 32 of the
// matrix, a thread one of the four chains (kernels/product_float.cpp) of eight by four of them. 32
// values of each row at a time pass through shared memory; the next are on their way meanwhile.
// Bound by loads from there, one for each eleven multiply-adds.
// Of a matrix with no more rows than that, a threadgroup has 16 rows of the step, a thread two by
// four, so that there are enough threadgroups, and 128 values pass at a time, since less work would
// not hide the way of the next. 27 KiB of shared memory.

#include "backend/gpu/kernels/product_rows.h"

#include "backend/gpu/kernels/float_elements.h"
#include "backend/gpu/kernels/product_place.h"

namespace hearth::backend::gpu {

#define FLOAT_DEPTH 32u  // values of a row at once
#define FLOAT_FEW_DEPTH 128u
#define FLOAT_OWN_ROWS 8u  // at most
#define FLOAT_OWN_OUTPUTS 4u
// Value k of rows in shared memory: row r is at r ^ FLOAT_KEY(k, n), so that lanes that bring
// neighbouring values meet different banks, of lines of the rows and four floats more; n is the
// rows of the matrix, or half of those of the step. Where a thread has two rows of the step, their
// lines have one float more, and row r is at r.
#define FLOAT_KEY(k, n) (4u * ((k) / 4u) % (n))
#define FLOAT_LINE(n_rows) ((n_rows) + 4u)
#define FLOAT_FEW_LINE (PRODUCT_ROWS_FEW + 1u)

#define FLOATS_F32 0u
#define FLOATS_F16 1u
#define FLOATS_BF16 2u

/// Elements i ... i + 3 of a row; i is a multiple of 4, `kind` a constant.
DEVICE_FN f32x4 load_floats(u32 kind, DEVICE(const u32) row, u32 i) {
  if (kind == FLOATS_F32) {
    const u32x4 bits = load4(row + i);
    return make4(f32_of_bits(bits.x), f32_of_bits(bits.y), f32_of_bits(bits.z),
                 f32_of_bits(bits.w));
  }
  const u32x2 bits = load2(row + i / 2);
  if (kind == FLOATS_F16) {
    return make4(to_f32(f16_of_bits(bits.x & 0xffffu)), to_f32(f16_of_bits(bits.x >> 16)),
                 to_f32(f16_of_bits(bits.y & 0xffffu)), to_f32(f16_of_bits(bits.y >> 16)));
  }
  return make4(f32_of_bits(bits.x << 16), f32_of_bits(bits.x & 0xffff0000u),
               f32_of_bits(bits.y << 16), f32_of_bits(bits.y & 0xffff0000u));
}

/// Values `first` ... first + 3 of a row in lines; the first is at `place` of its own.
DEVICE_FN void store_four(f32x4 four, u32 first, u32 place, u32 line, SHARED(f32) cells) {
  SHARED(f32) to = cells + (first * line + place);
  to[0] = four.x;
  to[line] = four.y;
  to[2 * line] = four.z;
  to[3 * line] = four.w;
}

/// What a threadgroup has: n_rows rows of the step, a thread own_rows of them, and `depth` values
/// of each at once.
struct FloatTile {
  u32 n_rows;
  u32 own_rows;
  u32 depth;
};

/// From line to line of the rows of the step.
DEVICE_FN u32 step_line(FloatTile tile) {
  return tile.own_rows == FLOAT_OWN_ROWS ? FLOAT_LINE(tile.n_rows) : FLOAT_FEW_LINE;
}

/// Where row r of the step is in the line of value k.
DEVICE_FN u32 step_place(FloatTile tile, u32 k, u32 r) {
  return tile.own_rows == FLOAT_OWN_ROWS ? r ^ FLOAT_KEY(k, tile.n_rows / 2) : r;
}

/// Where a thread's row i is: two groups of neighbours, half of the rows apart.
DEVICE_FN u32 own_row_offset(FloatTile tile, u32 i) {
  return i % (tile.own_rows / 2) + i / (tile.own_rows / 2) * (tile.n_rows / 2);
}

/// The next value of the thread's chain, which is one of four from k on; sums [own_rows,
/// FLOAT_OWN_OUTPUTS].
DEVICE_FN void add_value(FloatTile tile, SHARED(const f32) x_cells, SHARED(const f32) w_cells,
                         u32 k, u32 chain, u32 own_row, u32 own_output, THREAD(f32) sums) {
  SHARED(const f32) x = x_cells + ((k + chain) * step_line(tile) + step_place(tile, k, own_row));
  f32 xs[FLOAT_OWN_ROWS];
  if (tile.own_rows == FLOAT_OWN_ROWS) {
    const f32x4 low = load4(x);
    const f32x4 high = load4(x + tile.n_rows / 2);
    xs[0] = low.x;
    xs[1] = low.y;
    xs[2] = low.z;
    xs[3] = low.w;
    xs[4] = high.x;
    xs[5] = high.y;
    xs[6] = high.z;
    xs[7] = high.w;
  } else {
    UNROLL for (u32 i = 0; i < tile.own_rows; ++i) {
      xs[i] = x[own_row_offset(tile, i)];
    }
  }
  const u32 n_outputs = PRODUCT_ROWS_OUTPUTS;
  const f32x4 w = load4(
      w_cells + ((k + chain) * FLOAT_LINE(n_outputs) + (own_output ^ FLOAT_KEY(k, n_outputs))));
  UNROLL for (u32 i = 0; i < tile.own_rows; ++i) {
    THREAD(f32) four = sums + i * FLOAT_OWN_OUTPUTS;
    four[0] = fma_f32(w.x, xs[i], four[0]);
    four[1] = fma_f32(w.y, xs[i], four[1]);
    four[2] = fma_f32(w.z, xs[i], four[2]);
    four[3] = fma_f32(w.w, xs[i], four[3]);
  }
}

/// A thread of a threadgroup.
struct FloatThread {
  u32 group_x;
  u32 group_y;
  u32 index;
  u32 lane;
  u32 simdgroup;
};

#define MAX_BROUGHT 4u  // rows of which a thread brings four values

DEVICE_FN void multiply_rows(u32 kind, FloatTile tile, PARAMS(ProductParams) p, u32 n_rows,
                             FloatThread own, DEVICE(const u8) weight, DEVICE(const f32) x,
                             DEVICE(const f32) bias, DEVICE(const f32) gate,
                             DEVICE(const f32) residual, DEVICE(f32) y, SHARED(f32) x_cells,
                             SHARED(f32) w_cells) {
  const u32 n_outputs = PRODUCT_ROWS_OUTPUTS;
  const u32 first_row = own.group_x * tile.n_rows;
  const u32 first_output = own.group_y * n_outputs;
  f32 sums[FLOAT_OWN_ROWS * FLOAT_OWN_OUTPUTS];
  UNROLL for (u32 i = 0; i < tile.own_rows * FLOAT_OWN_OUTPUTS; ++i) {
    sums[i] = 0.0f;
  }
  // What the thread brings: four values of some rows, which are so far apart.
  const u32 brought = own.index % (tile.depth / 4) * 4;
  const u32 brought_row = own.index / (tile.depth / 4);
  const u32 gap = PRODUCT_ROWS_THREADS / (tile.depth / 4);
  const u32 n_x = tile.n_rows / gap;
  const u32 n_w = n_outputs / gap;
  f32x4 next_x[MAX_BROUGHT];
  f32x4 next_w[MAX_BROUGHT];
  const u32 chain = own.lane / 8;
  const u32 own_row = own.lane % 8 * (tile.own_rows / 2);
  const u32 own_output = own.simdgroup * FLOAT_OWN_OUTPUTS;
  u32 n_there = 0;  // values in shared memory, which are multiplied while the next are on their way
  for (u32 begin = 0; begin < p.n_in + tile.depth; begin += tile.depth) {
    if (begin < p.n_in) {
      const u32 from = min_u32(begin + brought, p.n_in - 4u);
      UNROLL for (u32 i = 0; i < n_x; ++i) {
        const u64 row = min_u32(first_row + brought_row + i * gap, n_rows - 1u);
        next_x[i] = load4(x + (row * p.n_in + from));
      }
      UNROLL for (u32 i = 0; i < n_w; ++i) {
        const u64 row = min_u32(first_output + brought_row + i * gap, p.n_out - 1u);
        const u64 row_words = kind == FLOATS_F32 ? p.n_in : p.n_in / 2;
        next_w[i] = load_floats(kind, words(weight) + row * row_words, from);
      }
    }
    if (n_there == tile.depth) {
      UNROLL for (u32 k = 0; k < tile.depth; k += 4) {
        add_value(tile, x_cells, w_cells, k, chain, own_row, own_output, sums);
      }
    } else {
      for (u32 k = 0; k < n_there; k += 4) {
        add_value(tile, x_cells, w_cells, k, chain, own_row, own_output, sums);
      }
    }
    group_barrier();  // they have been
    if (begin < p.n_in) {
      UNROLL for (u32 i = 0; i < n_x; ++i) {
        store_four(next_x[i], brought, step_place(tile, brought, brought_row + i * gap),
                   step_line(tile), x_cells);
      }
      UNROLL for (u32 i = 0; i < n_w; ++i) {
        store_four(next_w[i], brought, (brought_row + i * gap) ^ FLOAT_KEY(brought, n_outputs),
                   FLOAT_LINE(n_outputs), w_cells);
      }
      n_there = min_u32(p.n_in - begin, tile.depth);
    }
    group_barrier();
  }
  // The lanes of the four chains share the stores.
  UNROLL for (u32 i = 0; i < tile.own_rows * FLOAT_OWN_OUTPUTS; ++i) {
    const f32 pair = sums[i] + shuffle_xor(sums[i], 8);
    const f32 sum = pair + shuffle_xor(pair, 16);
    const u32 row = first_row + own_row + own_row_offset(tile, i / FLOAT_OWN_OUTPUTS);
    const u32 output = first_output + own_output + i % FLOAT_OWN_OUTPUTS;
    if (i * 4 / (tile.own_rows * FLOAT_OWN_OUTPUTS) == chain && row < n_rows && output < p.n_out) {
      const u64 to = u64(row) * p.n_out + output;
      y[to] = product_result(p, sum, to, output, row, bias, gate, residual);
    }
  }
}

#define PRODUCT_ROWS_KERNEL(name, kind)                                                      \
  KERNEL(name, PRODUCT_ROWS_THREADS, ProductParams, BUFFER(0, const u32, counts),            \
         BUFFER(1, const u8, weight), BUFFER(2, const f32, x), BUFFER(3, const f32, bias),   \
         BUFFER(4, const f32, gate), BUFFER(5, const f32, residual), BUFFER(6, f32, y)) {    \
    SHARED_ARRAY(f32, x_cells, (FLOAT_DEPTH * FLOAT_LINE(PRODUCT_ROWS_ROWS)));               \
    SHARED_ARRAY(f32, w_cells, (FLOAT_FEW_DEPTH * FLOAT_LINE(PRODUCT_ROWS_OUTPUTS)));        \
    const u32 n_rows = counts[p.axis];                                                       \
    const FloatThread own = {k_group.x, k_group.y, k_thread.x, k_lane, k_simdgroup};         \
    const bool has_few = p.n_out <= PRODUCT_ROWS_OUTPUTS;                                    \
    if (has_few && k_group.x * PRODUCT_ROWS_FEW < n_rows) {                                  \
      const FloatTile tile = {PRODUCT_ROWS_FEW, 2, FLOAT_FEW_DEPTH};                         \
      multiply_rows(kind, tile, p, n_rows, own, weight, x, bias, gate, residual, y, x_cells, \
                    w_cells);                                                                \
    } else if (!has_few && k_group.x * PRODUCT_ROWS_ROWS < n_rows) {                         \
      const FloatTile tile = {PRODUCT_ROWS_ROWS, FLOAT_OWN_ROWS, FLOAT_DEPTH};               \
      multiply_rows(kind, tile, p, n_rows, own, weight, x, bias, gate, residual, y, x_cells, \
                    w_cells);                                                                \
    }                                                                                        \
  }

PRODUCT_ROWS_KERNEL(product_rows_f32, FLOATS_F32)
PRODUCT_ROWS_KERNEL(product_rows_f16, FLOATS_F16)
PRODUCT_ROWS_KERNEL(product_rows_bf16, FLOATS_BF16)

}  // namespace hearth::backend::gpu
