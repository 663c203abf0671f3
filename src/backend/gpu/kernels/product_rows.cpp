// Products of prompts with matrices of floats. A threadgroup has 64 rows of the step and 32 of the
// matrix, a thread one of the four chains (kernels/product_float.cpp) of eight by four of them. 32
// values of each row at a time pass through shared memory; the next are on their way meanwhile. 13
// KiB of shared memory. Bound by loads from there, one for each eleven multiply-adds.

#include "backend/gpu/kernels/product_rows.h"

#include "backend/gpu/kernels/float_elements.h"
#include "backend/gpu/kernels/product_place.h"

namespace hearth::backend::gpu {

#define FLOAT_DEPTH 32u   // values of a row at once
#define BROUGHT_ROWS 32u  // of 32 values, that the threads bring at once
#define FLOAT_OWN_ROWS 8u
#define FLOAT_OWN_OUTPUTS 4u
// Value k of rows in shared memory: row r is at r ^ FLOAT_KEY(k), so that lanes that bring
// neighbouring values meet different banks, of lines of the rows and four floats more.
#define FLOAT_KEY(k) (4u * ((k) / 4u))
#define X_LINE (PRODUCT_ROWS_ROWS + 4u)
#define W_LINE (PRODUCT_ROWS_OUTPUTS + 4u)

/// Elements i ... i + 3 of a row; i is a multiple of 4.
DEVICE_FN f32x4 f32_four(DEVICE(const u32) row, u32 i) {
  const u32x4 bits = load4(row + i);
  return make4(f32_of_bits(bits.x), f32_of_bits(bits.y), f32_of_bits(bits.z), f32_of_bits(bits.w));
}
DEVICE_FN f32x4 f16_four(DEVICE(const u32) row, u32 i) {
  const u32x2 bits = load2(row + i / 2);
  return make4(to_f32(f16_of_bits(bits.x & 0xffffu)), to_f32(f16_of_bits(bits.x >> 16)),
               to_f32(f16_of_bits(bits.y & 0xffffu)), to_f32(f16_of_bits(bits.y >> 16)));
}
DEVICE_FN f32x4 bf16_four(DEVICE(const u32) row, u32 i) {
  const u32x2 bits = load2(row + i / 2);
  return make4(f32_of_bits(bits.x << 16), f32_of_bits(bits.x & 0xffff0000u),
               f32_of_bits(bits.y << 16), f32_of_bits(bits.y & 0xffff0000u));
}

/// Values `first` ... first + 3 of a row of n in lines.
DEVICE_FN void store_four(f32x4 four, u32 first, u32 row, u32 n_line, SHARED(f32) cells) {
  SHARED(f32) to = cells + (first * n_line + (row ^ FLOAT_KEY(first)));
  to[0] = four.x;
  to[n_line] = four.y;
  to[2 * n_line] = four.z;
  to[3 * n_line] = four.w;
}

/// The next value of the thread's chain, which is one of four from k on; sums [FLOAT_OWN_ROWS,
/// FLOAT_OWN_OUTPUTS].
DEVICE_FN void add_value(SHARED(const f32) x_cells, SHARED(const f32) w_cells, u32 k, u32 chain,
                         u32 own_row, u32 own_output, THREAD(f32) sums) {
  SHARED(const f32) x = x_cells + ((k + chain) * X_LINE + (own_row ^ FLOAT_KEY(k)));
  const f32x4 low = load4(x);
  const f32x4 high = load4(x + PRODUCT_ROWS_ROWS / 2);
  const f32x4 w = load4(w_cells + ((k + chain) * W_LINE + (own_output ^ FLOAT_KEY(k))));
  const f32 xs[FLOAT_OWN_ROWS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  UNROLL for (u32 i = 0; i < FLOAT_OWN_ROWS; ++i) {
    THREAD(f32) four = sums + i * FLOAT_OWN_OUTPUTS;
    four[0] = fma_f32(w.x, xs[i], four[0]);
    four[1] = fma_f32(w.y, xs[i], four[1]);
    four[2] = fma_f32(w.z, xs[i], four[2]);
    four[3] = fma_f32(w.w, xs[i], four[3]);
  }
}

#define PRODUCT_ROWS_KERNEL(name, four, element_bytes)                                       \
  KERNEL(name, PRODUCT_ROWS_THREADS, ProductParams, BUFFER(0, const u32, counts),            \
         BUFFER(1, const u8, weight), BUFFER(2, const f32, x), BUFFER(3, const f32, bias),   \
         BUFFER(4, const f32, gate), BUFFER(5, const f32, residual), BUFFER(6, f32, y)) {    \
    SHARED_ARRAY(f32, x_cells, (FLOAT_DEPTH * X_LINE));                                      \
    SHARED_ARRAY(f32, w_cells, (FLOAT_DEPTH * W_LINE));                                      \
    const u32 n_rows = counts[p.axis];                                                       \
    const u32 first_row = k_group.x * PRODUCT_ROWS_ROWS;                                     \
    const u32 first_output = k_group.y * PRODUCT_ROWS_OUTPUTS;                               \
    if (first_row >= n_rows) {                                                               \
      return;                                                                                \
    }                                                                                        \
    f32 sums[FLOAT_OWN_ROWS * FLOAT_OWN_OUTPUTS];                                            \
    UNROLL for (u32 i = 0; i < FLOAT_OWN_ROWS * FLOAT_OWN_OUTPUTS; ++i) {                    \
      sums[i] = 0.0f;                                                                        \
    }                                                                                        \
    /* What the thread brings: four values of two rows of x and of one of the matrix. */     \
    const u32 brought = k_thread.x % 8 * 4;                                                  \
    const u32 brought_row = k_thread.x / 8;                                                  \
    DEVICE(const f32)                                                                        \
    low_x = x + u64(min_u32(first_row + brought_row, n_rows - 1u)) * p.n_in;                 \
    DEVICE(const f32)                                                                        \
    high_x = x + u64(min_u32(first_row + brought_row + BROUGHT_ROWS, n_rows - 1u)) * p.n_in; \
    DEVICE(const u32)                                                                        \
    w_row = words(weight) + u64(min_u32(first_output + brought_row, p.n_out - 1u)) *         \
                                (p.n_in / (4 / element_bytes));                              \
    u32 from = min_u32(brought, p.n_in - 4u);                                                \
    f32x4 next_low = load4(low_x + from);                                                    \
    f32x4 next_high = load4(high_x + from);                                                  \
    f32x4 next_w = four(w_row, from);                                                        \
    const u32 chain = k_lane / 8;                                                            \
    const u32 own_row = k_lane % 8 * 4; /* and the three after it, and 32 further on */      \
    const u32 own_output = k_simdgroup * FLOAT_OWN_OUTPUTS;                                  \
    for (u32 begin = 0; begin < p.n_in; begin += FLOAT_DEPTH) {                              \
      group_barrier(); /* the values before have been multiplied */                          \
      store_four(next_low, brought, brought_row, X_LINE, x_cells);                           \
      store_four(next_high, brought, brought_row + BROUGHT_ROWS, X_LINE, x_cells);           \
      store_four(next_w, brought, brought_row, W_LINE, w_cells);                             \
      group_barrier();                                                                       \
      if (begin + FLOAT_DEPTH < p.n_in) {                                                    \
        from = min_u32(begin + FLOAT_DEPTH + brought, p.n_in - 4u);                          \
        next_low = load4(low_x + from);                                                      \
        next_high = load4(high_x + from);                                                    \
        next_w = four(w_row, from);                                                          \
      }                                                                                      \
      if (p.n_in - begin >= FLOAT_DEPTH) {                                                   \
        UNROLL for (u32 k = 0; k < FLOAT_DEPTH; k += 4) {                                    \
          add_value(x_cells, w_cells, k, chain, own_row, own_output, sums);                  \
        }                                                                                    \
      } else {                                                                               \
        for (u32 k = 0; k < p.n_in - begin; k += 4) {                                        \
          add_value(x_cells, w_cells, k, chain, own_row, own_output, sums);                  \
        }                                                                                    \
      }                                                                                      \
    }                                                                                        \
    /* The lanes of the four chains each store a quarter. */                                 \
    UNROLL for (u32 i = 0; i < FLOAT_OWN_ROWS * FLOAT_OWN_OUTPUTS; ++i) {                    \
      const f32 pair = sums[i] + shuffle_xor(sums[i], 8);                                    \
      const f32 sum = pair + shuffle_xor(pair, 16);                                          \
      const u32 own = i / FLOAT_OWN_OUTPUTS;                                                 \
      const u32 row = first_row + own_row + own % 4 + own / 4 * (PRODUCT_ROWS_ROWS / 2);     \
      const u32 output = first_output + own_output + i % FLOAT_OWN_OUTPUTS;                  \
      if (own / 2 == chain && row < n_rows && output < p.n_out) {                            \
        const u64 to = u64(row) * p.n_out + output;                                          \
        y[to] = product_result(p, sum, to, output, row, bias, gate, residual);               \
      }                                                                                      \
    }                                                                                        \
  }

PRODUCT_ROWS_KERNEL(product_rows_f32, f32_four, F32_BYTES)
PRODUCT_ROWS_KERNEL(product_rows_f16, f16_four, F16_BYTES)
PRODUCT_ROWS_KERNEL(product_rows_bf16, bf16_four, BF16_BYTES)

}  // namespace hearth::backend::gpu
