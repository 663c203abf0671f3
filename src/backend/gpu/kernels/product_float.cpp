// Products with matrices of floats. The canonical sum of a result is four chains by k mod 4, so a
// simdgroup has a row of the step, and four lanes for each of eight rows of the matrix. These rows
// and what they meet of x pass through shared memory 1 KiB of a row at a time, loaded by all
// threads while the chains of the piece before are added up. Bound by the latency of the chains for
// few rows, then by memory.

#include "backend/gpu/kernels/float_elements.h"
#include "backend/gpu/kernels/product_place.h"

namespace hearth::backend::gpu {

#define CHUNK_WORDS 256                 // of a row
#define CHUNK_STRIDE (CHUNK_WORDS + 4)  // lanes of different rows meet different banks
#define CHUNK_LOADS 4                   // of 16 bytes, by each thread
#define CHAIN_STEPS 16                  // whose loads do not wait for each other

/// The thread's words of a chunk, which begins at word `begin` of each row of n_words.
DEVICE_FN void load_chunk(DEVICE(const u8) weight, u64 first_row, u32 last_row, u32 n_words,
                          u32 begin, u32 thread_index, THREAD(u32x4) chunk) {
  const u32x4 no_words = {0, 0, 0, 0};
  UNROLL for (u32 i = 0; i < CHUNK_LOADS; ++i) {
    const u32 place = (i * PRODUCT_THREADS + thread_index) * 4;
    const u64 row = first_row + min_u32(place / CHUNK_WORDS, last_row);
    const u32 word = begin + place % CHUNK_WORDS;
    chunk[i] = no_words;
    if (word < n_words) {
      chunk[i] = load4(words(weight) + row * n_words + word);
    }
  }
}

DEVICE_FN void store_chunk(SHARED(u32) rows, u32 thread_index, THREAD(const u32x4) chunk) {
  UNROLL for (u32 i = 0; i < CHUNK_LOADS; ++i) {
    const u32 place = (i * PRODUCT_THREADS + thread_index) * 4;
    store4(rows + place / CHUNK_WORDS * CHUNK_STRIDE + place % CHUNK_WORDS, chunk[i]);
  }
}

/// What a chunk of the matrix meets of one row of x: each lane of its simdgroup loads four values
/// in a row, so many times.
#define X_VALUES(element_bytes) (CHUNK_WORDS * 4 / (element_bytes))
#define X_LOADS(element_bytes) (X_VALUES(element_bytes) / 128)

DEVICE_FN void load_x(DEVICE(const f32) x_row, u32 begin, u32 end, u32 lane, THREAD(f32x4) values,
                      u32 n_loads) {
  UNROLL for (u32 i = 0; i < n_loads; ++i) {
    const u32 k = begin + 128 * i + 4 * lane;
    values[i] = k < end ? load4(x_row + k) : make4(0.0f, 0.0f, 0.0f, 0.0f);
  }
}

DEVICE_FN void store_x(SHARED(f32) x_row, u32 lane, THREAD(const f32x4) values, u32 n_loads) {
  UNROLL for (u32 i = 0; i < n_loads; ++i) {
    store4(x_row + 128 * i + 4 * lane, values[i]);
  }
}

#define FLOAT_PRODUCT_KERNEL(name, element, element_bytes)                                        \
  KERNEL(name, PRODUCT_THREADS, ProductParams, BUFFER(0, const u32, counts),                      \
         BUFFER(1, const u8, weight), BUFFER(2, const f32, x), BUFFER(3, const f32, routing),     \
         BUFFER(4, const f32, bias), BUFFER(5, const f32, gate), BUFFER(6, const f32, residual),  \
         BUFFER(7, f32, y)) {                                                                     \
    SHARED_ARRAY(u32, rows, PRODUCT_GROUP_OUTPUTS* CHUNK_STRIDE);                                 \
    SHARED_ARRAY(f32, x_rows, PRODUCT_GROUP_ROWS* X_VALUES(element_bytes));                       \
    const ProductPlace place = product_place(p, counts, routing, k_group.x, k_group.z);           \
    const u32 first_output = k_group.y * PRODUCT_GROUP_OUTPUTS;                                   \
    if (place.n_rows == 0u) {                                                                     \
      return;                                                                                     \
    }                                                                                             \
    const u32 n_words = p.n_in / (4 / element_bytes);                                             \
    const u64 first_row = place.first_weight + first_output;                                      \
    const u32 last_row = p.n_out - 1u - first_output;                                             \
    const u32 output = first_output + k_lane / 4;                                                 \
    const u32 chain = k_lane % 4;                                                                 \
    const bool has_row = k_simdgroup < place.n_rows;                                              \
    SHARED(const u32) my_row = rows + k_lane / 4 * CHUNK_STRIDE;                                  \
    DEVICE(const f32)                                                                             \
    x_row = x + u64(place.x_row + (has_row ? k_simdgroup : 0u)) * p.n_in;                         \
    SHARED(f32) my_x = x_rows + k_simdgroup * X_VALUES(element_bytes);                            \
    u32x4 chunk[CHUNK_LOADS];                                                                     \
    f32x4 x_chunk[X_LOADS(element_bytes)];                                                        \
    load_x(x_row, 0, p.n_in, k_lane, x_chunk, X_LOADS(element_bytes));                            \
    load_chunk(weight, first_row, last_row, n_words, 0, k_thread.x, chunk);                       \
    f32 sum = 0.0f;                                                                               \
    for (u32 begin = 0; begin < n_words; begin += CHUNK_WORDS) {                                  \
      group_barrier(); /* the chunk before has been summed */                                     \
      store_chunk(rows, k_thread.x, chunk);                                                       \
      store_x(my_x, k_lane, x_chunk, X_LOADS(element_bytes));                                     \
      group_barrier();                                                                            \
      load_chunk(weight, first_row, last_row, n_words, begin + CHUNK_WORDS, k_thread.x, chunk);   \
      load_x(x_row, (begin + CHUNK_WORDS) * (4 / element_bytes), p.n_in, k_lane, x_chunk,         \
             X_LOADS(element_bytes));                                                             \
      if (has_row) {                                                                              \
        const u32 n = min_u32(n_words - begin, CHUNK_WORDS) * (4 / element_bytes);                \
        u32 k = 0;                                                                                \
        for (; k + 4 * CHAIN_STEPS <= n; k += 4 * CHAIN_STEPS) {                                  \
          f32 weights[CHAIN_STEPS];                                                               \
          f32 values[CHAIN_STEPS];                                                                \
          UNROLL for (u32 i = 0; i < CHAIN_STEPS; ++i) {                                          \
            weights[i] = element(my_row, k + 4 * i + chain);                                      \
            values[i] = my_x[k + 4 * i + chain];                                                  \
          }                                                                                       \
          UNROLL for (u32 i = 0; i < CHAIN_STEPS; ++i) {                                          \
            sum = fma_f32(weights[i], values[i], sum);                                            \
          }                                                                                       \
        }                                                                                         \
        for (; k < n; k += 4) {                                                                   \
          sum = fma_f32(element(my_row, k + chain), my_x[k + chain], sum);                        \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
    sum = sum + shuffle_xor(sum, 1);                                                              \
    sum = sum + shuffle_xor(sum, 2);                                                              \
    if (has_row && chain == 0u && output < p.n_out) {                                             \
      const u64 to = u64(place.y_row + k_simdgroup) * p.n_out + output;                           \
      y[to] =                                                                                     \
          product_result(p, sum, to, output, place.step_row + k_simdgroup, bias, gate, residual); \
    }                                                                                             \
  }

FLOAT_PRODUCT_KERNEL(product_f32, f32_element, F32_BYTES)
FLOAT_PRODUCT_KERNEL(product_f16, f16_element, F16_BYTES)
FLOAT_PRODUCT_KERNEL(product_bf16, bf16_element, BF16_BYTES)

}  // namespace hearth::backend::gpu
