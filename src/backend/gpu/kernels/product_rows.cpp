// Products of prompts with matrices of floats. A threadgroup has 32 rows of the step and 32 of the
// matrix, a thread four by two of them with the four chains of each (kernels/product_float.cpp), 64
// values of each row at a time from shared memory; the next are on their way meanwhile. 17 KiB of
// shared memory. Bound by multiply-adds.

#include "backend/gpu/kernels/product_rows.h"

#include "backend/gpu/kernels/float_elements.h"
#include "backend/gpu/kernels/product_place.h"

namespace hearth::backend::gpu {

#define FLOAT_DEPTH 64u         // values of a row at once
#define FLOAT_DEPTH_STRIDE 68u  // lanes of different rows meet different banks
#define BROUGHT_FOURS 4u        // of values, that a thread brings of either side
#define FLOAT_OWN_ROWS 4u       // of a thread, every eighth
#define FLOAT_OWN_OUTPUTS 2u    // every sixteenth
#define FLOAT_CHAINS 4u

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

/// Four values more of the thread's sums [FLOAT_OWN_ROWS][FLOAT_OWN_OUTPUTS][FLOAT_CHAINS].
DEVICE_FN void add_four(SHARED(const f32) x, SHARED(const f32) w, THREAD(f32) sums) {
  f32x4 xs[FLOAT_OWN_ROWS];
  f32x4 ws[FLOAT_OWN_OUTPUTS];
  UNROLL for (u32 i = 0; i < FLOAT_OWN_ROWS; ++i) {
    xs[i] = load4(x + i * (PRODUCT_ROWS_ROWS / FLOAT_OWN_ROWS) * FLOAT_DEPTH_STRIDE);
  }
  UNROLL for (u32 j = 0; j < FLOAT_OWN_OUTPUTS; ++j) {
    ws[j] = load4(w + j * (PRODUCT_ROWS_OUTPUTS / FLOAT_OWN_OUTPUTS) * FLOAT_DEPTH_STRIDE);
  }
  UNROLL for (u32 i = 0; i < FLOAT_OWN_ROWS; ++i) {
    UNROLL for (u32 j = 0; j < FLOAT_OWN_OUTPUTS; ++j) {
      THREAD(f32) four = sums + (i * FLOAT_OWN_OUTPUTS + j) * FLOAT_CHAINS;
      four[0] = fma_f32(ws[j].x, xs[i].x, four[0]);
      four[1] = fma_f32(ws[j].y, xs[i].y, four[1]);
      four[2] = fma_f32(ws[j].z, xs[i].z, four[2]);
      four[3] = fma_f32(ws[j].w, xs[i].w, four[3]);
    }
  }
}

#define PRODUCT_ROWS_KERNEL(name, four, element_bytes)                                           \
  KERNEL(name, PRODUCT_ROWS_THREADS, ProductParams, BUFFER(0, const u32, counts),                \
         BUFFER(1, const u8, weight), BUFFER(2, const f32, x), BUFFER(3, const f32, bias),       \
         BUFFER(4, const f32, gate), BUFFER(5, const f32, residual), BUFFER(6, f32, y)) {        \
    SHARED_ARRAY(f32, x_cells, (PRODUCT_ROWS_ROWS * FLOAT_DEPTH_STRIDE));                        \
    SHARED_ARRAY(f32, w_cells, (PRODUCT_ROWS_OUTPUTS * FLOAT_DEPTH_STRIDE));                     \
    const u32 n_rows = counts[p.axis];                                                           \
    const u32 first_row = k_group.x * PRODUCT_ROWS_ROWS;                                         \
    const u32 first_output = k_group.y * PRODUCT_ROWS_OUTPUTS;                                   \
    if (first_row >= n_rows) {                                                                   \
      return;                                                                                    \
    }                                                                                            \
    f32 sums[FLOAT_OWN_ROWS * FLOAT_OWN_OUTPUTS * FLOAT_CHAINS];                                 \
    UNROLL for (u32 i = 0; i < FLOAT_OWN_ROWS * FLOAT_OWN_OUTPUTS * FLOAT_CHAINS; ++i) {         \
      sums[i] = 0.0f;                                                                            \
    }                                                                                            \
    /* What the thread brings: four values of rows that are eight apart. */                      \
    const u32 brought = k_thread.x % 16 * 4;                                                     \
    u64 x_starts[BROUGHT_FOURS];                                                                 \
    u64 w_starts[BROUGHT_FOURS];                                                                 \
    f32x4 x_next[BROUGHT_FOURS];                                                                 \
    f32x4 w_next[BROUGHT_FOURS];                                                                 \
    UNROLL for (u32 i = 0; i < BROUGHT_FOURS; ++i) {                                             \
      const u32 row = k_thread.x / 16 + 8 * i;                                                   \
      x_starts[i] = u64(min_u32(first_row + row, n_rows - 1u)) * p.n_in;                         \
      w_starts[i] =                                                                              \
          u64(min_u32(first_output + row, p.n_out - 1u)) * (p.n_in / (4 / element_bytes));       \
      const u32 from = min_u32(brought, p.n_in - 4u);                                            \
      x_next[i] = load4(x + (x_starts[i] + from));                                               \
      w_next[i] = four(words(weight) + w_starts[i], from);                                       \
    }                                                                                            \
    const u32 own_row = k_lane % 8;                                                              \
    const u32 own_output = k_simdgroup * 4 + k_lane / 8;                                         \
    for (u32 begin = 0; begin < p.n_in; begin += FLOAT_DEPTH) {                                  \
      group_barrier(); /* the values before have been multiplied */                              \
      UNROLL for (u32 i = 0; i < BROUGHT_FOURS; ++i) {                                           \
        const u32 cell = (k_thread.x / 16 + 8 * i) * FLOAT_DEPTH_STRIDE + brought;               \
        store4(x_cells + cell, x_next[i]);                                                       \
        store4(w_cells + cell, w_next[i]);                                                       \
      }                                                                                          \
      group_barrier();                                                                           \
      if (begin + FLOAT_DEPTH < p.n_in) {                                                        \
        const u32 from = min_u32(begin + FLOAT_DEPTH + brought, p.n_in - 4u);                    \
        UNROLL for (u32 i = 0; i < BROUGHT_FOURS; ++i) {                                         \
          x_next[i] = load4(x + (x_starts[i] + from));                                           \
          w_next[i] = four(words(weight) + w_starts[i], from);                                   \
        }                                                                                        \
      }                                                                                          \
      SHARED(const f32) own_x = x_cells + own_row * FLOAT_DEPTH_STRIDE;                          \
      SHARED(const f32) own_w = w_cells + own_output * FLOAT_DEPTH_STRIDE;                       \
      if (p.n_in - begin >= FLOAT_DEPTH) {                                                       \
        UNROLL for (u32 k = 0; k < FLOAT_DEPTH; k += 4) {                                        \
          add_four(own_x + k, own_w + k, sums);                                                  \
        }                                                                                        \
      } else {                                                                                   \
        for (u32 k = 0; k < p.n_in - begin; k += 4) {                                            \
          add_four(own_x + k, own_w + k, sums);                                                  \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
    UNROLL for (u32 i = 0; i < FLOAT_OWN_ROWS * FLOAT_OWN_OUTPUTS; ++i) {                        \
      const u32 row =                                                                            \
          first_row + own_row + i / FLOAT_OWN_OUTPUTS * (PRODUCT_ROWS_ROWS / FLOAT_OWN_ROWS);    \
      const u32 output = first_output + own_output +                                             \
                         i % FLOAT_OWN_OUTPUTS * (PRODUCT_ROWS_OUTPUTS / FLOAT_OWN_OUTPUTS);     \
      if (row < n_rows && output < p.n_out) {                                                    \
        THREAD(const f32) chains = sums + i * FLOAT_CHAINS;                                      \
        const u64 to = u64(row) * p.n_out + output;                                              \
        y[to] = product_result(p, (chains[0] + chains[1]) + (chains[2] + chains[3]), to, output, \
                               row, bias, gate, residual);                                       \
      }                                                                                          \
    }                                                                                            \
  }

PRODUCT_ROWS_KERNEL(product_rows_f32, f32_four, F32_BYTES)
PRODUCT_ROWS_KERNEL(product_rows_f16, f16_four, F16_BYTES)
PRODUCT_ROWS_KERNEL(product_rows_bf16, bf16_four, BF16_BYTES)

}  // namespace hearth::backend::gpu
