// A lane takes whole blocks of 256 weights in words of 16 bytes, and with them a unit of the
// canonical sum, so that nothing but a unit's floats goes from lane to lane; `lanes` of them share
// a row of the matrix, and a simdgroup has several rows. Codes of the input lie in shared memory,
// 20 KiB. Bound by memory for one row, by dot products for several.

#include "backend/gpu/kernels/projection.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/input_values.h"

namespace hearth::backend::gpu {

#define BLOCK_WORDS 68  // of the codes of a block and a gap, so that lanes meet different banks
#define BLOCK_SUMS 8    // of 32 codes each

/// Codes, scales and sums of one row.
DEVICE_FN void prepare_row(PARAMS(InputParams) p, DEVICE(const f32) x, DEVICE(const f32) norm,
                           DEVICE(const f32) gate, SHARED(f32) chunk, SHARED(f32) inverses,
                           u32 thread_index, SHARED(u32) codes, SHARED(f32) scales,
                           SHARED(i32) sums) {
  norm_inverses(p, x, 0, p.n, chunk, inverses, thread_index);
  for (u32 begin = 0; begin < p.n; begin += LANE_VALUES * PROJECTION_THREADS) {
    const u32 first = begin + LANE_VALUES * thread_index;
    const LaneCodes lane = lane_codes(p, x, norm, gate, inverses, 0, first, p.n);
    i32 sum = lane.sum + i32(shuffle_xor(u32(lane.sum), 1));
    sum = sum + i32(shuffle_xor(u32(sum), 2));
    if (first < p.n) {
      const u32 block = first / 256;
      const u32 word = block * BLOCK_WORDS + first % 256 / 4;
      codes[word] = lane.packed[0];
      codes[word + 1] = lane.packed[1];
      if (first % 32 == 0u) {
        sums[first / 32] = sum;
      }
      if (first % 256 == 0u) {
        scales[block] = lane.scale;
      }
    }
  }
  group_barrier();  // inverses may be overwritten, codes read
}

DEVICE_FN void prefetch_block(DEVICE(const u8) block, u32 bytes) {
  for (u32 i = 0; i < bytes; i += 128) {
    prefetch(block + i);
  }
}

/// A block of weights as it is stored, in registers.
struct StoredBlock {
  u32x4 head;     // scale, scale of minima, twelve bytes of scales and minima
  u32x4 high[2];  // fifth bits
  u32x4 low[8];   // nibbles
};

DEVICE_FN StoredBlock q4_k_load(DEVICE(const u8) block) {
  DEVICE(const u32) from = words(block);
  StoredBlock stored;
  stored.head = load4(from);
  stored.high[0] = stored.head;  // unused
  stored.high[1] = stored.head;
  UNROLL for (u32 i = 0; i < 8; ++i) {
    stored.low[i] = load4(from + 4 + 4 * i);
  }
  return stored;
}

DEVICE_FN StoredBlock q5_k_load(DEVICE(const u8) block) {
  DEVICE(const u32) from = words(block);
  StoredBlock stored;
  stored.head = load4(from);
  stored.high[0] = load4(from + 4);
  stored.high[1] = load4(from + 8);
  UNROLL for (u32 i = 0; i < 8; ++i) {
    stored.low[i] = load4(from + 12 + 4 * i);
  }
  return stored;
}

/// Four codes of sub-block j.
DEVICE_FN u32 q4_k_codes(u32 low, u32, u32 j) {
  return (low >> (4u * (j & 1u))) & 0x0f0f0f0fu;
}
DEVICE_FN u32 q5_k_codes(u32 low, u32 high, u32 j) {
  return ((low >> (4u * (j & 1u))) & 0x0f0f0f0fu) | (((high >> j) & 0x01010101u) << 4);
}

DEVICE_FN i32 byte_of(u32 word, u32 i) {
  return i32((word >> (8u * i)) & 255u);
}

/// What a block adds to a result: scale * value + offset * offset_value, in this order.
struct UnitTerms {
  f32 scale;
  f32 value;
  f32 offset;
  f32 offset_value;
};

DEVICE_FN i32 dot_words(u32x4 x, u32 a, u32 b, u32 c, u32 d, i32 sum) {
  return dot4_i8(d, x.w, dot4_i8(c, x.z, dot4_i8(b, x.y, dot4_i8(a, x.x, sum))));
}

/// Scales and minima are six bits each (quant/types/k_scales.h), four to a word here.
#define K_TERMS(format)                                                                        \
  DEVICE_FN UnitTerms format##_terms(THREAD_REF(const StoredBlock) w, SHARED(const u32) x,     \
                                     SHARED(const i32) x_sums, f32 x_scale) {                  \
    const u32 scales[2] = {w.head.y & 0x3f3f3f3fu,                                             \
                           (w.head.w & 0x0f0f0f0fu) | ((w.head.y >> 2) & 0x30303030u)};        \
    const u32 minima[2] = {w.head.z & 0x3f3f3f3fu,                                             \
                           ((w.head.w >> 4) & 0x0f0f0f0fu) | ((w.head.z >> 2) & 0x30303030u)}; \
    i32 value = 0;                                                                             \
    i32 offset_value = 0;                                                                      \
    UNROLL for (u32 j = 0; j < 8; ++j) {                                                       \
      i32 dot = 0;                                                                             \
      UNROLL for (u32 i = 0; i < 2; ++i) {                                                     \
        const u32x4 low = w.low[j / 2 * 2 + i];                                                \
        const u32x4 high = w.high[i];                                                          \
        dot = dot_words(load4(x + 8 * j + 4 * i), format##_codes(low.x, high.x, j),            \
                        format##_codes(low.y, high.y, j), format##_codes(low.z, high.z, j),    \
                        format##_codes(low.w, high.w, j), dot);                                \
      }                                                                                        \
      value += byte_of(scales[j / 4], j % 4) * dot;                                            \
      offset_value += byte_of(minima[j / 4], j % 4) * x_sums[j];                               \
    }                                                                                          \
    UnitTerms terms;                                                                           \
    terms.scale = to_f32(f16_of_bits(w.head.x & 0xffffu)) * x_scale;                           \
    terms.value = f32(value);                                                                  \
    terms.offset = -to_f32(f16_of_bits(w.head.x >> 16)) * x_scale;                             \
    terms.offset_value = f32(offset_value);                                                    \
    return terms;                                                                              \
  }

K_TERMS(q4_k)
K_TERMS(q5_k)

/// Adds the units of the lanes [first, first + n) to a sum, in order.
DEVICE_FN f32 add_units(THREAD_REF(const UnitTerms) terms, u32 first, u32 n, f32 sum) {
  for (u32 i = first; i < first + n; ++i) {
    sum = fma_f32(shuffle(terms.scale, i), shuffle(terms.value, i), sum);
    sum = fma_f32(shuffle(terms.offset, i), shuffle(terms.offset_value, i), sum);
  }
  return sum;
}

/// Adds what a block of each lane's row gives to the sums of all rows of the step.
#define ADD_BLOCK(format, stored, results)                                                      \
  UNROLL for (u32 row = 0; row < PROJECTION_MAX_ROWS; ++row) {                                  \
    if (row < n_rows) {                                                                         \
      const u32 at = row * n_blocks + block;                                                    \
      const UnitTerms terms =                                                                   \
          format##_terms(stored, codes + at * BLOCK_WORDS, sums + at * BLOCK_SUMS, scales[at]); \
      results[row] = add_units(terms, k_lane - lane, n, results[row]);                          \
    }                                                                                           \
  }

#define PROJECTION_KERNEL(name, format, block_bytes)                                              \
  KERNEL(name, PROJECTION_THREADS, ProjectionParams, BUFFER(0, const u32, counts),                \
         BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, gate),         \
         BUFFER(4, const f32, routing), BUFFER(5, const f32, row_gate),                           \
         BUFFER(6, const f32, residual), BUFFER(7, const u8, weight0),                            \
         BUFFER(8, const u8, weight1), BUFFER(9, const u8, weight2), BUFFER(10, f32, y0),         \
         BUFFER(11, f32, y1), BUFFER(12, f32, y2)) {                                              \
    SHARED_ARRAY(u32, codes, PROJECTION_BLOCKS* BLOCK_WORDS);                                     \
    SHARED_ARRAY(f32, scales, PROJECTION_BLOCKS);                                                 \
    SHARED_ARRAY(i32, sums, PROJECTION_BLOCKS* BLOCK_SUMS);                                       \
    SHARED_ARRAY(f32, chunk, NORM_CHUNK);                                                         \
    SHARED_ARRAY(f32, inverses, PROJECTION_MAX_RUNS);                                             \
    const u32 first_step_row = k_group.z * p.group_rows;                                          \
    /* Asked for before it is known whether there is such a row, so that two waits are one. */    \
    f32 expert = 0.0f;                                                                            \
    if (p.n_used != 0u) {                                                                         \
      expert = routing[u64(first_step_row) * 2u * p.n_used + k_group.y];                          \
    }                                                                                             \
    const u32 n_step_rows = counts[p.input.axis];                                                 \
    if (first_step_row >= n_step_rows) {                                                          \
      return;                                                                                     \
    }                                                                                             \
    const u32 n_rows = min_u32(n_step_rows - first_step_row, p.group_rows);                       \
    const u32 slots = max_u32(p.n_used, 1u);                                                      \
    const u32 y_row = first_step_row * slots + k_group.y;                                         \
    const u32 x_row = p.has_x_per_slot != 0u ? y_row : first_step_row;                            \
    const u64 first_weight = u64(u32(expert)) * p.expert_rows;                                    \
    const u32 n_blocks = p.input.n / 256;                                                         \
    /* The row of the matrices that is the lane's, one after another over all parts. */           \
    const u32 n0 = p.n_out[0];                                                                    \
    const u32 n1 = p.is_pair != 0u ? 0u : p.n_out[1];                                             \
    const u32 n_all = n0 + n1 + p.n_out[2];                                                       \
    const u32 place =                                                                             \
        (k_group.x * PROJECTION_SIMDGROUPS + k_simdgroup) * (32u / p.lanes) + k_lane / p.lanes;   \
    const u32 in_range = min_u32(place, n_all - 1u);                                              \
    const u32 part = in_range < n0 ? 0u : (in_range < n0 + n1 ? 1u : 2u);                         \
    const u32 output = part == 0u ? in_range : (part == 1u ? in_range - n0 : in_range - n0 - n1); \
    const u64 row_bytes = u64(n_blocks) * block_bytes;                                            \
    DEVICE(const u8) matrix = part == 0u ? weight0 : (part == 1u ? weight1 : weight2);            \
    DEVICE(const u8)                                                                              \
    from = matrix + (first_weight + (part == 0u ? p.first_row[0] : 0u) + output) * row_bytes;     \
    const u64 up_at = (first_weight + p.first_row[1] + output) * row_bytes;                       \
    const u32 lane = k_lane & (p.lanes - 1u);                                                     \
    /* On their way while the input is prepared. */                                               \
    for (u32 b = lane; b < n_blocks; b += p.lanes) {                                              \
      prefetch_block(from + u64(b) * block_bytes, block_bytes);                                   \
      if (p.is_pair != 0u) {                                                                      \
        prefetch_block(weight1 + up_at + u64(b) * block_bytes, block_bytes);                      \
      }                                                                                           \
    }                                                                                             \
    for (u32 row = 0; row < n_rows; ++row) {                                                      \
      prepare_row(p.input, x + u64(x_row + row) * p.input.n, norm,                                \
                  gate + u64(first_step_row + row) * p.input.gate_stride, chunk, inverses,        \
                  k_thread.x, codes + row * n_blocks * BLOCK_WORDS, scales + row * n_blocks,      \
                  sums + row * n_blocks * BLOCK_SUMS);                                            \
    }                                                                                             \
    f32 results[PROJECTION_MAX_ROWS] = {0.0f, 0.0f};                                              \
    f32 ups[PROJECTION_MAX_ROWS] = {0.0f, 0.0f};                                                  \
    for (u32 begin = 0; begin < n_blocks; begin += p.lanes) {                                     \
      const u32 block = min_u32(begin + lane, n_blocks - 1u);                                     \
      const u32 n = min_u32(n_blocks - begin, p.lanes);                                           \
      const StoredBlock stored = format##_load(from + u64(block) * block_bytes);                  \
      ADD_BLOCK(format, stored, results)                                                          \
      if (p.is_pair != 0u) {                                                                      \
        const StoredBlock stored_up = format##_load(weight1 + up_at + u64(block) * block_bytes);  \
        ADD_BLOCK(format, stored_up, ups)                                                         \
      }                                                                                           \
    }                                                                                             \
    if (lane == 0u && place < n_all) {                                                            \
      UNROLL for (u32 row = 0; row < PROJECTION_MAX_ROWS; ++row) {                                \
        if (row < n_rows) {                                                                       \
          f32 result = results[row];                                                              \
          if (p.is_pair != 0u) {                                                                  \
            result = activate_f32(p.activation, result) * ups[row];                               \
          } else if (p.has_row_gate != 0u) {                                                      \
            result = result * activate_f32(p.row_activation, row_gate[first_step_row + row]);     \
          }                                                                                       \
          const u64 to = u64(y_row + row) * p.n_out[part] + output;                               \
          if (part == 0u) {                                                                       \
            y0[to] = p.has_residual != 0u ? result + residual[to] : result;                       \
          } else if (part == 1u) {                                                                \
            y1[to] = result;                                                                      \
          } else {                                                                                \
            y2[to] = result;                                                                      \
          }                                                                                       \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }

PROJECTION_KERNEL(projection_q4_k, q4_k, 144)
PROJECTION_KERNEL(projection_q5_k, q5_k, 176)

}  // namespace hearth::backend::gpu
